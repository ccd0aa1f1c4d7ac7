#!/usr/bin/env python3
"""The hook `workers`: a function of its request. It needs only Python's standard library."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def answer(request):
    """Decides how many workers there are, and writes down their names. `ork hook schema request` prints the fields of a request."""
    count = 2 * request["args"]["replicas"]
    names = " ".join(f"worker-{number}" for number in range(1, count + 1))
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": request["object"]["metadata"]["name"] + "-workers"},
        "data": {"names": names},
    }
    return {"data": {"count": count}, "children": [config_map]}


class Server(BaseHTTPRequestHandler):
    def do_POST(self):
        try:
            status, body = 200, answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        except (ValueError, KeyError, TypeError) as problem:
            status, body = 400, {"error": f"the request cannot be read: {problem}"}
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        """Prints nothing for each request."""


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 18080), Server)
    print("listening on 127.0.0.1:18080", flush=True)
    server.serve_forever()
