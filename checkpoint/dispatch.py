"""A request to its action: the way that all doors share. Refusals in order: action, arguments, tenant, database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint import actions
from checkpoint.errors import CheckpointError

if TYPE_CHECKING:
    from checkpoint.envelope import Request
    from checkpoint.runtime import Runtime
    from checkpoint.validation import RequestValidator


class Dispatcher:
    """Serves requests with one runtime. Validators and actions are loaded when they are first asked for."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loaded: dict[str, tuple[RequestValidator, actions.Run]] = {}

    def serve(self, request: Request) -> dict[str, Any]:
        """The data of the answer. Raises CheckpointError for every refusal and failure."""
        validator, run = self._load(request.fields.get("action"))
        arguments = validator.arguments(request.fields)
        for name, text in request.texts.items():
            if name in arguments:
                arguments[name] = text
        if validator.takes_tenant and self._runtime.settings.tenant is not None:
            _pin(arguments, self._runtime.settings.tenant)
        return run(self._runtime, arguments)

    def _load(self, action: object) -> tuple[RequestValidator, actions.Run]:
        if not isinstance(action, str) or action not in actions.NAMES:
            raise CheckpointError("UNKNOWN_ACTION", f"action must be one of {', '.join(actions.NAMES)}")
        if action not in self._loaded:
            from checkpoint.validation import RequestValidator

            self._loaded[action] = RequestValidator(action), actions.load(action)
        return self._loaded[action]


def _pin(arguments: dict[str, Any], tenant: str) -> None:
    """Holds the request to the tenant of the process (contract, section 6, CHECKPOINT_TENANT)."""
    if arguments.get("tenant_id", tenant) != tenant or arguments.get("all_tenants"):
        raise CheckpointError(
            "TENANT_DENIED",
            "this process serves one tenant only; leave tenant_id and all_tenants out or name that tenant",
        )
    arguments["tenant_id"] = tenant
