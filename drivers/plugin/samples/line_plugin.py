#!/usr/bin/env python3
"""Plugin of the collector (docs/plugin-protocol.md) for a device that takes lines over TCP.

    GET name   ->   name=21.5      or name=? where it has none
    LIST       ->   name,name,...

Only Python's own library. Copy it, and replace Device by what your machine speaks.
"""
import json
import socket
import sys
import time

HELLO = {
    "contract": 1,
    "name": "line-sample",
    "version": "1.0",
    "types": ["odac", "vendor_b", "plastcontrol"],
    "capabilities": {"max_points": 100, "discover": True},
    "settings_schema": {"type": "object", "properties": {"prefix": {"type": "string"}}, "additionalProperties": False},
}


class PluginError(Exception):
    """`about` is {"reason": {"type": ...}} where the source failed, {"fault": ...} where something cannot be read."""

    def __init__(self, about, message):
        super().__init__(message)
        self.about = about


def reason(name):
    return {"reason": {"type": name}}


class Device:
    """Reads only: it sends GET and LIST, and nothing else."""

    def __init__(self, source, deadline):
        self.prefix = source["settings"].get("prefix", "")
        # The address that the collector has looked up and may connect to.
        place = (source["addresses"][0], source["details"]["port"])
        self.socket = socket.create_connection(place, timeout=left(deadline))
        self.lines = self.socket.makefile("r", encoding="ascii", newline="\n")

    def ask(self, command, deadline):
        self.socket.settimeout(left(deadline))
        self.socket.sendall((command + "\r\n").encode("ascii"))
        line = self.lines.readline(4096)
        if not line.endswith("\n"):
            raise PluginError(reason("CONNECTION_CLOSED"), "the device closed the connection")
        return line.rstrip("\r\n")

    def read(self, point, deadline):
        address = point["address"]
        if not address.isascii() or not address.isprintable():
            return {"fault": "address_invalid", "detail": "expected printable ASCII"}
        name, _, text = self.ask("GET " + self.prefix + address, deadline).partition("=")
        if name != self.prefix + address:
            raise PluginError(reason("UNKNOWN"), "the device answered something else: " + name[:80])
        if text == "?":
            return {"fault": "not_found", "detail": "the device has no " + name}
        return value_of(text, point["type"])

    def close(self):
        self.socket.close()


def value_of(text, wanted):
    """The value as JSON has it; 64-bit numbers as digits in a text."""
    if wanted == "string":
        return {"value": text}
    if wanted == "bool":
        return {"value": text in ("1", "true")}
    if wanted in ("int64", "uint64"):
        return {"value": text}
    try:
        number = float(text)
    except ValueError:
        return {"fault": "not_a_number", "detail": text[:80]}
    is_float = wanted in (None, "float32", "float64")
    return {"value": number if is_float or not number.is_integer() else int(number), "type": wanted or "float64"}


def left(deadline):
    rest = deadline - time.monotonic()
    if rest <= 0:
        raise PluginError(reason("TIMEOUT"), "the device did not answer in time")
    return rest


class Plugin:
    device = None

    def validate(self, request):
        source = request["source"]
        problems = []
        if not isinstance(source["details"].get("port"), int):
            problems.append("details.port is missing")
        for name in source["settings"]:
            if name != "prefix":
                problems.append("settings." + name[:80] + " is not known; this plugin has prefix")
        return {"problems": problems}

    def open(self, request):
        self.close(request)
        self.device = Device(request["source"], deadline_of(request))
        return {}

    def read(self, request):
        device = self.opened()
        deadline = deadline_of(request)
        return {"readings": [device.read(point, deadline) for point in request["points"]]}

    def discover(self, request):
        names = sorted(self.opened().ask("LIST", deadline_of(request)).split(","))
        start = int(request["cursor"] or 0)
        end = start + request["limit"]
        page = [{"address": name, "name": name, "type": "float64"} for name in names[start:end]]
        return {"variables": page, "next": str(end) if end < len(names) else None}

    def close(self, request):
        if self.device:
            self.device.close()
        self.device = None
        return {}

    def opened(self):
        if not self.device:
            raise PluginError(reason("UNKNOWN"), "no device is open")
        return self.device


VERBS = ("validate", "open", "read", "discover", "close")


def deadline_of(request):
    return time.monotonic() + request["deadline_ms"] / 1000


def answer(plugin, request):
    if request["verb"] not in VERBS:
        return {"error": {"fault": "device_error", "message": "this plugin has no such verb"}}
    try:
        return {"result": getattr(plugin, request["verb"])(request)}
    except PluginError as error:
        failure = {**error.about, "message": str(error)[:1000]}
    except socket.timeout:
        failure = {**reason("TIMEOUT"), "message": "the device did not answer in time"}
    except ConnectionRefusedError as error:
        failure = {**reason("CONNECTION_REFUSED"), "message": str(error)}
    except OSError as error:
        failure = {**reason("CONNECTION_CLOSED"), "message": str(error)}
    # What is still to come from the device must not be taken for the answer to the next request.
    if "reason" in failure:
        plugin.close(request)
    return {"error": failure}


def say(message):
    print(json.dumps(message), flush=True)


def main():
    plugin = Plugin()
    say({"hello": HELLO})
    for line in sys.stdin:
        request = json.loads(line)
        if request["verb"] == "shutdown":
            break
        say({"id": request["id"], **answer(plugin, request)})
    plugin.close(None)


main()
