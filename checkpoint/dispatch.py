"""A request to its action: the way that all doors share. Refusals in order: action, arguments, tenant, database."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from checkpoint import actions
from checkpoint.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from checkpoint.actions import Answer
    from checkpoint.envelope import Request
    from checkpoint.meanwhile import Meanwhile
    from checkpoint.runtime import Runtime
    from checkpoint.validation import RequestValidator


LONGEST_NAME = 64  # of what is compared with the names of actions


class Call(msgspec.Struct, frozen=True):
    """A request that passed validation; `size` is the bytes of its states."""

    name: str
    action: actions.Action
    arguments: dict[str, Any]
    size: int
    goes_together: bool

    def joins(self, taken: set[Any]) -> bool:
        """Whether it can be served together with the calls of its action that have put their keys into `taken`."""
        return self.goes_together and self.action.joins(self.arguments, taken)  # type: ignore[attr-defined]


class Dispatcher:
    """Serves requests with one runtime. Validators and actions are loaded when they are first asked for."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loaded: dict[str, tuple[str, RequestValidator, actions.Action, bool]] = {}

    def serve(self, request: Request | CheckpointError) -> Answer:
        """The data of the answer, or the error that is the answer, whatever happens."""
        return self.serve_call(self.prepare(request))

    def prepare(self, request: Request | CheckpointError) -> Call | CheckpointError:
        """What is to be done, or the error that is the answer. Changes nothing, and asks nobody."""
        if isinstance(request, CheckpointError):
            return request
        try:
            name, validator, action, goes_together = self._load(request.fields.get("action"))
            arguments = validator.arguments(request.fields)
            size = 0
            for field, text in request.texts.items():
                if field in arguments:
                    arguments[field] = text
                    size += len(text)
            if validator.takes_tenant and self._runtime.settings.tenant is not None:
                _pin(arguments, self._runtime.settings.tenant)
            return Call(name, action, arguments, size, goes_together)
        except Exception as error:
            return self.failure(error)

    def serve_call(self, call: Call | CheckpointError) -> Answer:
        """The data of the answer, or the error that is the answer, whatever happens."""
        self._runtime.counters.requests += 1
        if isinstance(call, CheckpointError):
            return self._counted(call)
        try:
            return call.action.run(self._runtime, call.arguments)
        except Exception as error:
            return self._counted(self.failure(error))

    def serve_together(self, calls: Sequence[Call], meanwhile: Meanwhile) -> actions.Together:
        """Serves calls that join each other; what is left to be done makes their answers, in their order.

        Whatever happens, `meanwhile` is called before this returns: as soon as there is something to wait for.
        """
        many = [call.arguments for call in calls]
        try:
            together: actions.Together = calls[0].action.run_together(self._runtime, many, meanwhile)  # type: ignore[attr-defined]
        except Exception as error:
            together = actions.Together(partial(list, [self.failure(error)] * len(calls)), complete=True)
        meanwhile()
        return together._replace(make=partial(self._made, together.make, len(calls)))

    def _made(self, make: Callable[[], list[Answer | None]], count: int) -> list[Answer | None]:
        try:
            answers = make()
        except Exception as error:
            answers = [self.failure(error)] * count
        for answer in answers:
            if answer is not None:
                self._runtime.counters.requests += 1
                self._counted(answer)
        return answers

    def _load(self, name: object) -> tuple[str, RequestValidator, actions.Action, bool]:
        if not isinstance(name, str) or name not in actions.NAMES:
            raise _unknown_action(name)
        if name not in self._loaded:
            from checkpoint.validation import RequestValidator

            action = actions.load(name)
            self._loaded[name] = name, RequestValidator(name), action, hasattr(action, "run_together")
        return self._loaded[name]

    def failure(self, error: Exception) -> CheckpointError:
        """The error as an answer: itself where it is one, else INTERNAL_ERROR with the traceback in the log."""
        if isinstance(error, CheckpointError):
            return error
        for hidden in (error.__cause__, error.__context__):  # it came in a callback of a C library, or in a wait
            if isinstance(hidden, KeyboardInterrupt):
                raise hidden
        self._runtime.forget_call()
        self._runtime.log.traceback("a request failed in a way that is not foreseen")
        return CheckpointError("INTERNAL_ERROR", "a fault of checkpoint-manager; its traceback is on stderr")

    def _counted(self, answer: Answer) -> Answer:
        if isinstance(answer, CheckpointError):
            self._runtime.counters.failed(answer.code)
        return answer


def _unknown_action(name: object) -> CheckpointError:
    from difflib import get_close_matches

    word = name[:LONGEST_NAME].lower().replace("-", "_") if isinstance(name, str) else ""
    near = get_close_matches(word, actions.NAMES, 1)
    perhaps = f"{near[0]} is perhaps meant: " if near else ""
    verb = "is missing; it must" if name is None else "must"
    return CheckpointError("UNKNOWN_ACTION", f"{perhaps}action {verb} be one of {', '.join(actions.NAMES)}")


def _pin(arguments: dict[str, Any], tenant: str) -> None:
    """Holds the request to the tenant of the process (contract, section 6, CHECKPOINT_TENANT)."""
    if arguments.get("tenant_id", tenant) != tenant or arguments.get("all_tenants"):
        raise CheckpointError(
            "TENANT_DENIED",
            "this process serves one tenant only; leave tenant_id and all_tenants out or name that tenant",
        )
    arguments["tenant_id"] = tenant
