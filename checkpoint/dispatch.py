"""A request to its action: the way that all doors share. Refusals in order: action, arguments, tenant, database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from checkpoint import actions
from checkpoint.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from checkpoint.envelope import Request
    from checkpoint.runtime import Runtime
    from checkpoint.validation import RequestValidator

    Answer = dict[str, Any] | CheckpointError


class Dispatcher:
    """Serves requests with one runtime. Validators and actions are loaded when they are first asked for."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._loaded: dict[str, tuple[RequestValidator, actions.Action]] = {}

    def serve(self, request: Request | CheckpointError) -> Answer:
        """The data of the answer, or the error that is the answer, whatever happens."""
        self._runtime.counters.requests += 1
        try:
            if isinstance(request, CheckpointError):
                raise request
            action, arguments = self._prepare(request)
            answer: Answer = action.run(self._runtime, arguments)
        except Exception as error:
            answer = self.failure(error)
        return self._counted(answer)

    def goes_together(self, request: Request | CheckpointError) -> str | None:
        """The action of a request that may be served together with others of that action, else None."""
        if isinstance(request, CheckpointError):
            return None
        try:
            _, action = self._load(request.fields.get("action"))
        except Exception:  # told when it is served
            return None
        return request.fields["action"] if hasattr(action, "run_together") else None

    def serve_together(self, requests: Sequence[Request]) -> list[Answer]:
        """The answers of requests of one action that goes together, in their order; one bad request fails alone."""
        self._runtime.counters.requests += len(requests)
        answers: list[Answer | None] = [None] * len(requests)
        ready: dict[int, dict[str, Any]] = {}
        for place, request in enumerate(requests):
            try:
                action, ready[place] = self._prepare(request)
            except Exception as error:
                answers[place] = self.failure(error)
        if ready:
            try:
                served: Sequence[Answer] = action.run_together(self._runtime, list(ready.values()))  # type: ignore[attr-defined]
            except Exception as error:
                served = [self.failure(error)] * len(ready)
            for place, answer in zip(ready, served, strict=True):
                answers[place] = answer
        return [self._counted(answer) for answer in answers if answer is not None]

    def _prepare(self, request: Request) -> tuple[actions.Action, dict[str, Any]]:
        validator, action = self._load(request.fields.get("action"))
        arguments = validator.arguments(request.fields)
        for name, text in request.texts.items():
            if name in arguments:
                arguments[name] = text
        if validator.takes_tenant and self._runtime.settings.tenant is not None:
            _pin(arguments, self._runtime.settings.tenant)
        return action, arguments

    def _load(self, name: object) -> tuple[RequestValidator, actions.Action]:
        if not isinstance(name, str) or name not in actions.NAMES:
            raise CheckpointError("UNKNOWN_ACTION", f"action must be one of {', '.join(actions.NAMES)}")
        if name not in self._loaded:
            from checkpoint.validation import RequestValidator

            self._loaded[name] = RequestValidator(name), actions.load(name)
        return self._loaded[name]

    def failure(self, error: Exception) -> CheckpointError:
        """The error as an answer: itself where it is one, else INTERNAL_ERROR with the traceback in the log."""
        if isinstance(error, CheckpointError):
            return error
        self._runtime.log.traceback("a request failed in a way that is not foreseen")
        return CheckpointError("INTERNAL_ERROR", "a fault of checkpoint-manager; its traceback is on stderr")

    def _counted(self, answer: Answer) -> Answer:
        if isinstance(answer, CheckpointError):
            self._runtime.counters.failed(answer.code)
        return answer


def _pin(arguments: dict[str, Any], tenant: str) -> None:
    """Holds the request to the tenant of the process (contract, section 6, CHECKPOINT_TENANT)."""
    if arguments.get("tenant_id", tenant) != tenant or arguments.get("all_tenants"):
        raise CheckpointError(
            "TENANT_DENIED",
            "this process serves one tenant only; leave tenant_id and all_tenants out or name that tenant",
        )
    arguments["tenant_id"] = tenant
