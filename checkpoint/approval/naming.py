"""How a complete file gets its name without ever taking the place of another (contract, section 5)."""

from __future__ import annotations

import errno
import os

from checkpoint.approval.newfile import make_file

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_NO_RENAMES = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_EXCLUSIVE_RENAMES = (("renameat2", 1), ("renameatx_np", 4))  # Linux RENAME_NOREPLACE, macOS RENAME_EXCL


def give_name(folder: int, temporary: bytes, name: bytes, content: bytes) -> None:
    """Gives the file `temporary` of `folder` the name `name`. Raises FileExistsError where that is taken, and OSError.

    By a hard link; where the file system has none, by a rename that does not replace; where it has neither, by making
    the file under its name, which alone of the three can leave a part of it behind when the process is killed.
    """
    try:
        os.link(temporary, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if not rename_without_replacing(folder, temporary, name):
            make_file(folder, name, content)


def rename_without_replacing(folder: int, old: bytes, new: bytes) -> bool:
    """False where system or file system cannot. Raises FileExistsError where `new` is taken, and OSError."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    for function, flag in _EXCLUSIVE_RENAMES:
        rename = getattr(library, function, None)
        if rename is None:
            continue
        if rename(folder, old, folder, new, flag) == 0:
            return True
        number = ctypes.get_errno()
        if number not in _NO_RENAMES:
            raise OSError(number, os.strerror(number))
    return False
