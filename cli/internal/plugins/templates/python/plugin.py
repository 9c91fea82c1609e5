"""Keeps a record in the plugin's state: record.json.

`plugin.py run DIR` is one job, a plan or an apply; DIR has what it needs and takes what it
leaves. The standard library is enough.
"""

import json
import os
import signal
import sys
from pathlib import Path

CONTRACT = 1  # the version of the contract that this plugin knows


class Refused(Exception):
    """Nothing was done."""


class Stopped(Exception):
    """The runner asked to stop."""


def decide(destroy, now, want):
    """What has to happen so that the record that is there becomes the wanted one."""
    if destroy:
        return "delete" if now is not None else ""
    if now is None:
        return "create"
    if now.get("name") != want["name"]:
        return "replace"
    return "" if now == want else "update"


def read(path):
    """The JSON of a file, None without one. What cannot be read is an empty record."""
    try:
        value = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def write(path, value):
    """Replaces a file: a reader finds the old or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name("." + path.name)
    new.write_text(json.dumps(value, sort_keys=True))
    new.rename(path)


def plan(job, config, record):
    """Compares, and pins what the apply is to do."""
    if not config.get("token"):
        raise ValueError("token is missing: give the component a token")
    want = {"name": config["name"], "text": config["text"]}
    action = decide(os.environ["BERTH_DESTROY"] == "true", read(record), want)
    out = job / "out"
    write(out / "plan.canonical.json", {"action": action, "record": want})
    if not action:
        write(out / "plan.summary.json", {"no_change": True})
        return True
    field = {"path": "text", "after": want["text"]}
    write(out / "plan.summary.json", {"objects": [{"address": "record " + want["name"], "action": action, "fields": [field]}]})
    write(out / "pinned" / "plan.json", {"record": want, "token": config["token"]})
    return False


def apply(job, record):
    """Does what the plan pinned, and nothing else. It may be repeated."""
    pinned = read(job / "in" / "pinned" / "plan.json")
    if not pinned or "record" not in pinned:
        raise Refused("what the plan pinned is damaged")
    if os.environ["BERTH_DESTROY"] == "true":
        record.unlink(missing_ok=True)
        return
    print("writing record", pinned["record"]["name"])  # the log
    write(record, pinned["record"])
    write(job / "out" / "outputs.json", {"receipt": {"value": pinned["token"], "sensitive": True}})


def run(job):
    """One job; says whether there was nothing to do."""
    spec = read(job / "job.json") or {}
    if spec.get("version") != CONTRACT:
        raise Refused(f"this plugin knows version {CONTRACT} of the contract")
    record = Path(os.environ["BERTH_STATE_DIR"]) / "record.json"
    if spec.get("operation") == "plan":
        return plan(job, spec.get("plugin", {}).get("config", {}), record)
    apply(job, record)
    return False


def stop(_signal, _frame):
    raise Stopped("stopped on request")


def main():
    signal.signal(signal.SIGTERM, stop)
    job = Path(sys.argv[2])
    result, code = {"outcome": "succeeded"}, 0
    try:
        result["no_change"] = run(job)
    except Refused as e:
        result, code = {"outcome": "refused", "error": str(e)}, 10
    except Stopped as e:
        result, code = {"outcome": "cancelled", "error": str(e)}, 1
    except Exception as e:  # the job's error, in one line
        result, code = {"outcome": "failed", "error": " ".join(str(e).split())}, 1
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the result is being written
    write(job / "out" / "result.json", result)
    return code


if __name__ == "__main__":
    sys.exit(main())
