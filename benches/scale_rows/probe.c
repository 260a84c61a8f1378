/* Blocking clients over HTTP/1.1, over it with TLS, and over HTTP/2 with TLS; for benches/scale.
 *
 *   probe rate PROTOCOL PORT CONNECTIONS RATE PATH           PROTOCOL: h1, h1s, h2
 *   probe handshakes PORT COUNT NAME MODULUS SEED
 *
 * `rate` sends requests at a rate, from a thread for each connection, until its standard input ends; a request that is late
 * because the one before took long is timed from when it was due. `handshakes` makes TLS connections one after the other,
 * with a name by chance, one request on each, and holds the certificate against the name. Each prints one line of JSON.
 *
 * Built with -DWITH_TLS and OpenSSL, or without both: then it ends with status 3 where TLS is wanted.
 */
#include "client.h"
#ifdef WITH_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#endif

enum { TRIES = 3, STACK = 256 * 1024, GRACE_NS = 500 * 1000 * 1000 };
enum protocol { H1, H1S, H2 };

struct line {
    int fd, leaving, have, at;
    uint32_t stream;
    enum protocol protocol;
#ifdef WITH_TLS
    SSL *tls;
#endif
    unsigned char buffer[32768];
};

static struct {
    int port;
    const char *path;
    enum protocol protocol;
    double interval_ns;
    volatile int stop;
} probe;

struct prober {
    pthread_t thread;
    int number;
    uint64_t done, other, failed, again;
    struct times times;
};

#ifdef WITH_TLS
static SSL_CTX *context;

static int line_tls(struct line *line, const char *name)
{
    line->tls = SSL_new(context);
    SSL_set_fd(line->tls, line->fd);
    SSL_set_tlsext_host_name(line->tls, name);
    if (line->protocol == H2)
        SSL_set_alpn_protos(line->tls, (const unsigned char *)"\2h2", 3);
    return SSL_connect(line->tls) == 1;
}
#endif

static void line_close(struct line *line)
{
#ifdef WITH_TLS
    if (line->tls)
        SSL_free(line->tls);
    line->tls = 0;
    ERR_clear_error();
#endif
    if (line->fd >= 0)
        close(line->fd);
    line->fd = -1;
}

static int line_write(struct line *line, const void *bytes, int count)
{
#ifdef WITH_TLS
    if (line->tls)
        return SSL_write(line->tls, bytes, count) == count;
#endif
    return send(line->fd, bytes, count, MSG_NOSIGNAL) == count;
}

/* Reads more behind what is in the buffer. False: the connection ended. */
static int line_fill(struct line *line)
{
    if (line->at > 0) {
        memmove(line->buffer, line->buffer + line->at, line->have - line->at);
        line->have -= line->at;
        line->at = 0;
    }
    int room = sizeof line->buffer - 1 - line->have, n;
    if (!room)
        return 0;
#ifdef WITH_TLS
    if (line->tls)
        n = SSL_read(line->tls, line->buffer + line->have, room);
    else
#endif
        n = recv(line->fd, line->buffer + line->have, room, 0);
    if (n <= 0)
        return 0;
    line->have += n;
    return 1;
}

static int line_open(struct line *line, int port, enum protocol protocol, const char *name)
{
    struct sockaddr_in to = loopback(port);
    struct timeval most = { .tv_sec = 30 };
    int one = 1;
    line->protocol = protocol;
    line->have = line->at = line->leaving = 0;
    line->stream = 1;
    line->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (line->fd < 0)
        fail("socket");
    setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(line->fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    if (connect(line->fd, (void *)&to, sizeof to))
        return 0;
#ifdef WITH_TLS
    if (protocol != H1 && !line_tls(line, name))
        return 0;
#else
    (void)name;
#endif
    if (protocol == H2) {
        /* The preface and SETTINGS without a field: a window of 65,535 bytes is enough for a probe. */
        static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
        return line_write(line, preface, 24 + 9);
    }
    return 1;
}

/* Makes one request over HTTP/1.1; the status, or 0 where the connection broke. */
static int line_ask_h1(struct line *line, const char *path, int last)
{
    char request[512];
    int n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path,
                     last ? "Connection: close\r\n" : "");
    if (!line_write(line, request, n))
        return 0;
    char *end;
    for (;;) {
        line->buffer[line->have] = 0;
        if ((end = strstr((char *)line->buffer + line->at, "\r\n\r\n")))
            break;
        if (!line_fill(line))
            return 0;
    }
    *end = 0;
    struct head head = parse_head((char *)line->buffer + line->at);
    line->at = (unsigned char *)end + 4 - line->buffer;
    while (head.length > line->have - line->at) {
        head.length -= line->have - line->at;
        line->at = line->have;
        if (!line_fill(line))
            return 0;
    }
    line->at += head.length;
    line->leaving = head.closes;
    return head.status;
}

static int put_text(unsigned char *out, int name, const char *text)
{
    int size = strlen(text);
    out[0] = name;
    out[1] = size > 126 ? 126 : size;
    memcpy(out + 2, text, out[1]);
    return 2 + out[1];
}

/* Makes one request over HTTP/2; header fields are literals, the one of the response that is read is the first. */
static int line_ask_h2(struct line *line, const char *path)
{
    unsigned char frame[320] = { 0, 0, 0, 1, 5, line->stream >> 24, line->stream >> 16, line->stream >> 8, line->stream };
    unsigned char *fields = frame + 9;
    int size = 0, status = 0;
    fields[size++] = 0x82;
    fields[size++] = 0x87;
    size += put_text(fields + size, 0x01, "localhost");
    size += put_text(fields + size, 0x04, path);
    frame[1] = size >> 8;
    frame[2] = size;
    if (!line_write(line, frame, 9 + size))
        return 0;
    uint32_t mine = line->stream;
    line->stream += 2;
    for (;;) {
        while (line->have - line->at < 9)
            if (!line_fill(line))
                return 0;
        unsigned char *b = line->buffer + line->at;
        int length = b[0] << 16 | b[1] << 8 | b[2], type = b[3], flags = b[4];
        uint32_t stream = (uint32_t)(b[5] & 127) << 24 | b[6] << 16 | b[7] << 8 | b[8];
        if (length > 16384)
            return 0;
        while (line->have - line->at < 9 + length)
            if (!line_fill(line))
                return 0;
        b = line->buffer + line->at + 9;
        line->at += 9 + length;
        if (type == 1 && stream == mine) {
            while (length > 1 && (b[0] & 0xe0) == 0x20)
                b++, length--;
            status = b[0] == 0x88 ? 200 : 500;
        }
        if (type == 0 && length) {
            unsigned char more[13] = { 0, 0, 4, 8, 0, 0, 0, 0, 0, length >> 24, length >> 16, length >> 8, length };
            if (!line_write(line, more, 13))
                return 0;
        }
        if (type == 3 && stream == mine)
            return 0;
        if (type == 4 && !(flags & 1) && !line_write(line, "\0\0\0\4\1\0\0\0\0", 9))
            return 0;
        if (type == 7)
            line->leaving = 1;
        if (type <= 1 && stream == mine && flags & 1)
            return status;
    }
}

static int line_ask(struct line *line, const char *path)
{
    return line->protocol == H2 ? line_ask_h2(line, path) : line_ask_h1(line, path, 0);
}

/* Whether the server has closed, or said that it will: with TLS bytes of an alert or of a frame wait then. */
static int line_idle_ended(struct line *line)
{
    char byte;
    if (line->leaving)
        return 1;
    ssize_t n = recv(line->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n == 0)
        return 1;
    if (n < 0 && errno == EAGAIN)
        return 0;
    /* Session tickets and SETTINGS are answered with the next request; GOAWAY and close_notify end in a broken one, which
     * is sent again. */
    return n < 0;
}

static void *probe_run(void *given)
{
    struct prober *p = given;
    struct line *line = calloc(1, sizeof *line);
    line->fd = -1;
    if (!line_open(line, probe.port, probe.protocol, "localhost"))
        line_close(line);
    /* Handshakes of all connections come first, together; they are no part of what is measured. */
    uint64_t due = now_ns() + GRACE_NS + (uint64_t)(probe.interval_ns * (p->number % 97) / 97.0);
    while (!probe.stop) {
        uint64_t began = now_ns();
        if (began < due) {
            struct timespec until = { due / 1000000000, due % 1000000000 };
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, 0);
            began = now_ns();
        } else {
            began = due;
        }
        due += (uint64_t)probe.interval_ns;
        if (probe.stop)
            break;
        int status = 0;
        for (int n = 0; n < TRIES && !status; n++) {
            if (line->fd >= 0 && line_idle_ended(line))
                line_close(line);
            if (line->fd < 0 && !line_open(line, probe.port, probe.protocol, "localhost")) {
                line_close(line);
                continue;
            }
            status = line_ask(line, probe.path);
            if (!status) {
                line_close(line);
                p->again++;
            }
        }
        times_add(&p->times, now_ns() - began);
        if (status == 200)
            p->done++;
        else if (status)
            p->other++;
        else
            p->failed++;
    }
    line_close(line);
    free(line);
    return 0;
}

static int command_rate(char **a)
{
    int count = atoi(a[2]);
    probe.protocol = !strcmp(a[0], "h2") ? H2 : !strcmp(a[0], "h1s") ? H1S : H1;
#ifndef WITH_TLS
    if (probe.protocol != H1)
        return 3;
#endif
    probe.port = atoi(a[1]);
    probe.path = a[4];
    probe.interval_ns = 1e9 * count / atof(a[3]);
    struct prober *all = calloc(count, sizeof *all);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    uint64_t began = now_ns();
    for (int i = 0; i < count; i++) {
        all[i].number = i;
        if (pthread_create(&all[i].thread, &attributes, probe_run, &all[i]))
            fail("pthread_create");
    }
    wait_for_end_of_input();
    probe.stop = 1;
    for (int i = 0; i < count; i++) {
        pthread_join(all[i].thread, 0);
        total.done += all[i].done;
        total.other += all[i].other;
        total.failed += all[i].failed;
        total.again += all[i].again;
        for (size_t n = 0; n < all[i].times.count; n++)
            times_add(&total.times, all[i].times.us[n] * 1000ull);
    }
    total_print((now_ns() - began) / 1e9);
    return 0;
}

#ifdef WITH_TLS
static int command_handshakes(char **a)
{
    int port = atoi(a[0]), count = atoi(a[1]);
    uint64_t modulus = strtoull(a[3], 0, 10), began = now_ns();
    random_state ^= strtoull(a[4], 0, 10) * 0x9e3779b97f4a7c15ull;
    struct line *line = calloc(1, sizeof *line);
    for (int i = 0; i < count; i++) {
        char name[200], subject[200] = "";
        uint64_t start = now_ns();
        fill_in(name, sizeof name, a[2], modulus);
        if (line_open(line, port, H1S, name)) {
            X509 *certificate = SSL_get_peer_certificate(line->tls);
            X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, subject, sizeof subject);
            X509_free(certificate);
        }
        if (line->fd >= 0 && line->tls && line_ask_h1(line, "/2b.txt", 1) == 200) {
            total.done++;
            total.other += strcmp(name, subject) != 0;
            while (line_fill(line))
                line->at = line->have;
        } else {
            total.failed++;
        }
        times_add(&total.times, now_ns() - start);
        line_close(line);
    }
    total_print((now_ns() - began) / 1e9);
    return 0;
}
#endif

int main(int count, char **a)
{
    begin();
#ifdef WITH_TLS
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY);
#endif
    if (count == 7 && !strcmp(a[1], "rate"))
        return command_rate(a + 2);
    if (count == 7 && !strcmp(a[1], "handshakes")) {
#ifdef WITH_TLS
        return command_handshakes(a + 2);
#else
        return 3;
#endif
    }
    fprintf(stderr, "probe: rate or handshakes\n");
    return 2;
}
