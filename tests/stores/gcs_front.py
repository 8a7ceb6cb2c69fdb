"""What fake-gcs-server lacks of the XML API that obstore speaks, in front of it: uploads, plain and in parts.

It takes an object by PUT where the address is signed, so plain ones get the mark of a signature; it knows no uploads in
parts, so they are put together here. All else passes through.
"""

import http.client
import threading
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

SIGNED = "X-Goog-Algorithm=GOOG4-RSA-SHA256"
PASSED = ("content-type", "content-length", "range", "authorization", "x-goog-if-generation-match")


class Front(BaseHTTPRequestHandler):
    """One request, passed on or answered."""

    protocol_version = "HTTP/1.1"
    behind: int
    uploads: dict[str, dict[int, bytes]]

    def do_GET(self) -> None:
        self._answer(*self._asked(self.command, self.path, b"", self._headers()))

    do_HEAD = do_GET

    def do_DELETE(self) -> None:
        query = self._query()
        if "uploadId" in query:
            self.uploads.pop(query["uploadId"], None)
            self._answer(204, {}, b"")
        else:
            self.do_GET()

    def do_POST(self) -> None:
        query, body = self._query(), self._body()
        path = urlsplit(self.path).path
        if "uploads" in query:
            upload = uuid.uuid4().hex
            self.uploads[upload] = {}
            _, bucket, key = path.split("/", 2)
            named = f"<Bucket>{bucket}</Bucket><Key>{key}</Key><UploadId>{upload}</UploadId>"
            self._media_types[upload] = self.headers.get("Content-Type", "")
            self._answer_xml(f"<InitiateMultipartUploadResult>{named}</InitiateMultipartUploadResult>")
            return
        if "uploadId" in query:
            upload = query["uploadId"]
            parts = self.uploads.pop(upload)
            data = b"".join(parts[number] for number in sorted(parts))
            headers = {"content-type": self._media_types[upload], "content-length": str(len(data))}
            status, _, said = self._asked("PUT", f"{path}?{SIGNED}", data, headers)
            if status != 200:
                self._answer(status, {}, said)
                return
            tag = "<ETag>&quot;whole&quot;</ETag>"
            self._answer_xml(f"<CompleteMultipartUploadResult>{tag}</CompleteMultipartUploadResult>")
            return
        self._answer(*self._asked("POST", self.path, body, self._headers()))

    def do_PUT(self) -> None:
        query, body = self._query(), self._body()
        path = urlsplit(self.path).path
        if "partNumber" in query:
            self.uploads[query["uploadId"]][int(query["partNumber"])] = body
            self._answer(200, {"ETag": f'"{query["partNumber"]}"'}, b"")
            return
        if self.headers.get("x-goog-if-generation-match") == "0" and self._asked("HEAD", path, b"", {})[0] == 200:
            self._answer(412, {}, b"")
            return
        status, _, said = self._asked("PUT", f"{path}?{SIGNED}", body, self._headers())
        self._answer(status, {"ETag": '"whole"'} if status == 200 else {}, said)

    _media_types: dict[str, str]

    def _query(self) -> dict[str, str]:
        found = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        return {name: values[0] for name, values in found.items()}

    def _headers(self) -> dict[str, str]:
        return {name: value for name in PASSED if (value := self.headers.get(name)) is not None}

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", "0")))

    def _asked(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.behind, timeout=30)
        try:
            own = {"Host": self.headers["Host"], **headers}
            connection.request(method, path, body=body or None, headers=own)
            response = connection.getresponse()
            return response.status, dict(response.getheaders()), response.read()
        finally:
            connection.close()

    def _answer_xml(self, text: str) -> None:
        self._answer(200, {"Content-Type": "application/xml"}, f'<?xml version="1.0"?>{text}'.encode())

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        length = headers.get("Content-Length", str(len(body))) if self.command == "HEAD" else str(len(body))
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is logged."""


@contextmanager
def in_front_of(behind: int, port: int) -> Generator[None]:
    """Serve on a port what another port serves."""
    handler = type("BoundFront", (Front,), {"behind": behind, "uploads": {}, "_media_types": {}})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
