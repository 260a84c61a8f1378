"""A small HTTP interface of the embedded ClickHouse in the package chdb, for tests: chdb_server.py PORT DIRECTORY.

Statements run one at a time; connections are kept. The form field "incoming" becomes the table "incoming".
"""

import http.server
import os
import re
import sys
import threading
import urllib.parse

from chdb import session

PORT, DIRECTORY = int(sys.argv[1]), sys.argv[2]
SESSION = session.Session(os.path.join(DIRECTORY, "data"))
ROWS = os.path.join(DIRECTORY, "incoming.tsv")
LOCK = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        # A client may keep several connections.
        with LOCK:
            self.answer()

    def answer(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        fields = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query, keep_blank_values=True)
        kind = self.headers["Content-Type"]
        if kind.startswith("multipart/"):
            boundary = b"\r\n--" + kind.split("boundary=")[1].encode()
            # The form has one field.
            rows = body.split(b"\r\n\r\n", 1)[1].split(boundary, 1)[0]
            with open(ROWS, "wb") as file:
                file.write(rows)
            structure = fields["incoming_structure"][0]
            table = "FROM file('%s', 'TabSeparated', '%s')" % (ROWS, structure)
            statement = re.sub(r"FROM incoming\b", lambda _: table, fields["query"][0])
        else:
            statement = body.decode()
        try:
            status, answer = 200, SESSION.query(statement, "TabSeparated").bytes()
        except Exception as error:
            status, answer = 500, str(error).encode()
        self.send_response(status)
        self.send_header("X-ClickHouse-Server-Display-Name", "chdb")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
