"""A WSGI application for gunicorn, uWSGI and SCGI: logging in with a cookie, an upload, a download, an error."""

import hashlib
import secrets

SESSIONS = {}
SIZE = 20 << 20


def pieces():
    """20 MB whose bytes tell where they belong."""
    block = bytes(range(251)) * 261
    left = SIZE
    while left:
        piece = block[:left]
        left -= len(piece)
        yield piece


def session(environ):
    for part in environ.get('HTTP_COOKIE', '').split('; '):
        name, _, value = part.partition('=')
        if name == 'session' and value in SESSIONS:
            return SESSIONS[value]
    return None


def body(environ):
    read = environ['wsgi.input'].read
    return iter(lambda: read(65536), b'')


def application(environ, start_response):
    def answer(status, text, *fields):
        data = text.encode()
        start_response(status, [('Content-Type', 'text/plain'), ('Content-Length', str(len(data))), *fields])
        return [data]

    path, method = environ['PATH_INFO'], environ['REQUEST_METHOD']
    if path == '/login' and method == 'POST':
        name = b''.join(body(environ)).decode().partition('=')[2]
        key = secrets.token_hex(16)
        SESSIONS[key] = name
        # Two of them in one response, and a redirect with the host that the client sees.
        fields = [('Set-Cookie', f'session={key}; HttpOnly; Path=/'), ('Set-Cookie', 'theme=dark')]
        where = f'{environ["wsgi.url_scheme"]}://{environ["HTTP_HOST"]}/me'
        return answer('302 Found', '', ('Location', where), *fields)
    if path == '/me':
        name = session(environ)
        return answer('200 OK', f'hello {name}') if name else answer('403 Forbidden', 'who are you?')
    if path == '/upload':
        digest, size = hashlib.sha256(), 0
        for piece in body(environ):
            digest.update(piece)
            size += len(piece)
        return answer('200 OK', f'{size} {digest.hexdigest()}')
    if path == '/download':
        # No length: servers of HTTP send it in chunks, those of CGI end it.
        start_response('200 OK', [('Content-Type', 'application/octet-stream')])
        return pieces()
    if path == '/digest':
        digest = hashlib.sha256()
        for piece in pieces():
            digest.update(piece)
        return answer('200 OK', f'{SIZE} {digest.hexdigest()}')
    if path == '/broken':
        raise RuntimeError('broken on purpose')
    return answer('404 Not Found', 'nothing here')
