"""Serves shop.py over SCGI on a port of 127.0.0.1: a thread and a connection for each request, with what the library has."""

import socketserver
import sys
from wsgiref.handlers import BaseCGIHandler

import shop


class Limited:
    """The body of a request: the connection goes on after it, and is not read further."""

    def __init__(self, file, length):
        self.file, self.left = file, length

    def read(self, size):
        data = self.file.read(min(size, self.left))
        self.left -= len(data)
        return data


class Request(socketserver.StreamRequestHandler):
    wbufsize = 65536

    def handle(self):
        length = b''
        while (digit := self.rfile.read(1)).isdigit():
            length += digit
        if digit != b':':
            return
        parts = self.rfile.read(int(length)).decode('latin-1').split('\0')
        if self.rfile.read(1) != b',' or parts[0] != 'CONTENT_LENGTH' or parts.pop() or 'SCGI' not in parts[::2]:
            return
        environ = dict(zip(parts[::2], parts[1::2]))
        body = Limited(self.rfile, int(environ['CONTENT_LENGTH'] or 0))
        BaseCGIHandler(body, self.wfile, sys.stderr, environ).run(shop.application)


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


Server(('127.0.0.1', int(sys.argv[1])), Request).serve_forever()
