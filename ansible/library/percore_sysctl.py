#!/usr/bin/python
"""Sets kernel parameters of the running kernel, several at once."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: percore_sysctl
short_description: Set parameters of the running kernel
description:
  - Writes below /proc/sys what differs there, and nothing else.
  - A parameter that the kernel does not have, or that this host may not set (as in a
    container or a network namespace), is reported and left alone.
options:
  values:
    description: Values by the name of the parameter; numbers in one value are separated by blanks.
    type: dict
    default: {}
  minimums:
    description: Numbers by the name of the parameter; a higher value is left as it is.
    type: dict
    default: {}
author: percore
"""

EXAMPLES = r"""
- name: Connections may queue
  percore_sysctl:
    values:
      net.core.somaxconn: 65535
"""

RETURN = r"""
set:
  description: Parameters that were changed.
  type: list
  returned: always
refused:
  description: Parameters that this host does not have or may not set, with the reason.
  type: dict
  returned: always
"""

import os

from ansible.module_utils.basic import AnsibleModule


def main():
    module = AnsibleModule(
        argument_spec={
            "values": {"type": "dict", "default": {}},
            "minimums": {"type": "dict", "default": {}},
        },
        supports_check_mode=True,
    )
    written, refused = [], {}
    wanted = [(name, str(value), False) for name, value in module.params["values"].items()]
    wanted += [(name, str(value), True) for name, value in module.params["minimums"].items()]
    for name, value, minimum in wanted:
        path = "/proc/sys/" + name.replace(".", "/")
        try:
            with open(path, encoding="ascii") as file:
                current = file.read().split()
            if current == value.split() or (minimum and int(current[0]) >= int(value)):
                continue
            if module.check_mode:
                if not os.access(path, os.W_OK):
                    refused[name] = "not writable"
                    continue
            else:
                with open(path, "w", encoding="ascii") as file:
                    file.write(value)
            written.append(name)
        except FileNotFoundError:
            refused[name] = "not there"
        except (OSError, ValueError, IndexError) as error:
            refused[name] = getattr(error, "strerror", None) or str(error)
    module.exit_json(changed=bool(written), set=written, refused=refused)


if __name__ == "__main__":
    main()
