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
        self._hosts = set()

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
        said = result._result
        left = said.get("retries", 0) - said.get("attempts", 0)
        self._result("retry", result, message="%s (%d more tries)" % (reason(said), left))

    def v2_runner_on_failed(self, result, ignore_errors=False):
        kind = "ignored" if ignore_errors else "failed"
        self._result(kind, result, message=reason(result._result))

    def v2_runner_on_unreachable(self, result):
        self._result("unreachable", result, message=reason(result._result))

    def v2_playbook_on_stats(self, stats):
        hosts = {}
        for host in stats.processed:
            summary = stats.summarize(host)
            hosts[host] = {
                name: int(summary[name]) for name in ("ok", "changed", "failures", "unreachable", "skipped")
            }
        self._tell("stats", hosts=hosts)


def reason(said):
    """Why a task failed, out of its result."""
    for item in said.get("results") or []:
        if isinstance(item, dict) and (item.get("failed") or item.get("unreachable")):
            return reason({key: value for key, value in item.items() if key != "results"})
    text = str(said.get("msg") or "")
    # These say that a command failed, and its own words are elsewhere.
    if not text or text.startswith(("non-zero return code", "MODULE FAILURE", "Module failed", "Module result", "Task failed")):
        more = said.get("stderr") or said.get("module_stderr") or said.get("stdout") or said.get("module_stdout")
        if more:
            last = [line for line in str(more).splitlines() if line.strip()][-1:]
            text = "".join(last) or text
    return text.strip() or "no reason given"
