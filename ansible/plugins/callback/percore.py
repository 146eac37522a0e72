"""Tells the driver what happens, one JSON object per line."""

from __future__ import annotations

DOCUMENTATION = r"""
name: percore
type: notification
short_description: Tell a program what happens
description:
  - Writes one JSON object per line to the file descriptor that the environment variable
    PERCORE_EVENTS_FD names, and does nothing where there is none.
requirements:
  - enabled in the configuration
"""

import json
import os

from ansible.plugins.callback import CallbackBase


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "percore"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._events = None
        number = os.environ.get("PERCORE_EVENTS_FD", "")
        if number.isdigit():
            self._events = os.fdopen(int(number), "w", encoding="utf-8", closefd=False)
        self._items = {}  # why an item of a loop failed, by host

    def _tell(self, kind, **fields):
        if self._events is None:
            return
        try:
            self._events.write(json.dumps({"event": kind, **fields}) + "\n")
            self._events.flush()
        except OSError:
            self._events = None  # nobody listens any more; the play goes on

    def _result(self, kind, result, **more):
        # Private names: the public ones are younger than the oldest Ansible
        # that this works with.
        task = result._task
        fields = {"host": result._host.get_name(), "task": task.get_name().strip()}
        fields["task"] = fields["task"].split(" : ", 1)[-1]
        self._tell(kind, **fields, **more)

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._tell("task", task=task.get_name().strip().split(" : ", 1)[-1])

    def v2_runner_on_ok(self, result):
        said = result._result
        if result._task.action in ("debug", "ansible.builtin.debug"):
            self._result("note", result, message=str(said.get("msg", "")))
            return
        self._result("changed" if said.get("changed") else "ok", result)

    def v2_runner_on_skipped(self, result):
        self._result("skipped", result)

    def v2_runner_retry(self, result):
        self._result("retry", result, message=reason(result))

    def v2_runner_item_on_failed(self, result):
        self._items.setdefault(result._host.get_name(), reason(result))

    def v2_runner_on_failed(self, result, ignore_errors=False):
        kind = "ignored" if ignore_errors else "failed"
        item = self._items.pop(result._host.get_name(), None)
        self._result(kind, result, message=item or reason(result))

    def v2_runner_on_unreachable(self, result):
        self._result("unreachable", result, message=reason(result))

    def v2_playbook_on_stats(self, stats):
        hosts = {}
        for host in stats.processed:
            summary = stats.summarize(host)
            hosts[host] = {
                name: int(summary[name]) for name in ("ok", "changed", "failures", "unreachable", "skipped")
            }
        self._tell("stats", hosts=hosts)


def reason(result):
    """Why a task, or an item of its loop, failed."""
    said = result._result
    text = chain(getattr(result, "exception", None)) or str(said.get("msg") or "")
    # These say that a command failed, and its own words are elsewhere.
    vague = ("non-zero return code", "The command exited with", "MODULE FAILURE", "Module failed", "Module result")
    if not text or text.startswith(vague):
        more = said.get("stderr") or said.get("module_stderr") or said.get("stdout") or said.get("module_stdout")
        if more:
            last = [line for line in str(more).splitlines() if line.strip()][-1:]
            text = "".join(last) or text
    return text.strip() or "no reason given"


def chain(summary):
    """The messages of an error and of what caused it."""
    parts = []
    event = getattr(summary, "event", None)
    while event is not None and len(parts) < 10:
        part = str(getattr(event, "msg", "")).strip()
        if part and part not in ("Task failed.", "Module failed.", "Action failed."):
            parts.append(part)
        event = getattr(getattr(event, "chain", None), "event", None)
    # An outer message may repeat the inner one.
    kept = [part for i, part in enumerate(parts) if not any(part in outer for outer in parts[:i])]
    return ": ".join([part.rstrip(".") for part in kept[:-1]] + kept[-1:])
