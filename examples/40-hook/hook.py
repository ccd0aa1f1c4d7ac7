#!/usr/bin/env python3
"""The hooks of the example: each is a function of its request. It needs only Python's standard library."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def halls(request):
    """Assigns customers to halls so that the halls have about the same number of orders: the largest customer first."""
    args = request["args"]
    names = [f"hall-{number}" for number in range(1, args["halls"] + 1)]
    assigned = {name: {"customers": [], "orders": 0} for name in names}
    for customer in sorted(args["customers"], key=lambda one: (-one["orders"], one["name"])):
        hall = min(names, key=lambda name: (assigned[name]["orders"], name))
        assigned[hall]["customers"].append(customer["name"])
        assigned[hall]["orders"] += customer["orders"]
    return {"data": assigned}


def hall_map(request):
    """Writes down which hall serves which customer."""
    name, assigned = request["object"]["metadata"]["name"], request["args"]["halls"]
    lines = [
        f"{customer} {hall}" for hall, one in assigned.items() for customer in one["customers"]
    ]
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-map"},
        "data": {"customers": "\n".join(sorted(lines))},
    }
    busiest = max(one["orders"] for one in assigned.values())
    return {
        "children": [config_map],
        "data": {"busiest": busiest},
        "conditions": [{"type": "Assigned", "status": "True", "message": f"{len(lines)} customers"}],
    }


HOOKS = {"/halls": halls, "/map": hall_map}


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = json.dumps(HOOKS[self.path](request)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        """Prints nothing for each request."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 18040), Server)
    print("listening on 127.0.0.1:18040", flush=True)
    server.serve_forever()
