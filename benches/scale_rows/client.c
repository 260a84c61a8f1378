/* The client of benches/scale: what `firstbyte bench` does not do.
 *
 *   client load       PORT CONNECTIONS SECONDS PATH MODULUS SEED
 *   client open       PORT COUNT PER_SECOND OUTSTANDING PATH
 *   client read       PORT SECONDS PATH
 *   client probe      PROTOCOL PORT CONNECTIONS RATE PATH        PROTOCOL: h1, h1s, h2
 *   client handshakes PORT COUNT NAME MODULUS SEED
 *
 * `load` asks for paths by chance on keep-alive connections, each for the next one as soon as it has a response. `open`
 * opens connections at a rate (0: as fast as OUTSTANDING ones at a time allow), makes one request on each, and keeps them
 * until its standard input ends. `read` reads one response, for so long at most. `probe` sends requests at a rate from a thread for each connection until its standard
 * input ends; a request that comes late because the one before took long is timed from when it was due. `handshakes` makes
 * TLS connections one after the other, with a name by chance, one request on each, and holds the certificate against the
 * name. Each prints one line of JSON. All is at 127.0.0.1.
 *
 * In PATH and NAME `@` is a number below MODULUS by chance in five digits or more, `#` the last three digits of it, and
 * `^` an address of 10.0.0.0/8, sixteen addresses for each number.
 *
 * Built with -DWITH_TLS and OpenSSL, or without both: then h1s, h2 and handshakes end with status 3.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#ifdef WITH_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#endif

enum { HEAD_MOST = 2048, PIECE = 256 * 1024, TRIES = 3, STACK = 256 * 1024, GRACE_NS = 500 * 1000 * 1000 };

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void fail(const char *what)
{
    fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* xorshift64*: the same order of paths for each server. */
static uint64_t random_state = 88172645463325252ull;

static uint64_t random_below(uint64_t most)
{
    random_state ^= random_state >> 12;
    random_state ^= random_state << 25;
    random_state ^= random_state >> 27;
    return (random_state * 2685821657736338717ull >> 11) % most;
}

static void fill_in(char *out, size_t size, const char *pattern, uint64_t modulus)
{
    uint64_t n = modulus > 1 ? random_below(modulus) : 0;
    uint32_t address = 0x0a000000u + (uint32_t)(n << 4);
    size_t at = 0;
    for (; *pattern && at + 24 < size; pattern++) {
        if (*pattern == '@')
            at += sprintf(out + at, "%05llu", (unsigned long long)n);
        else if (*pattern == '#')
            at += sprintf(out + at, "%03u", (unsigned)(n % 1000));
        else if (*pattern == '^')
            at += sprintf(out + at, "%u.%u.%u.%u", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
        else
            out[at++] = *pattern;
    }
    out[at] = 0;
}

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return to;
}

/* A head of a response that has ended: its status, whether the connection ends, and the length of the body. */
struct head {
    int status, closes;
    long long length;
};

static struct head parse_head(char *text)
{
    struct head head = { .length = 0 };
    sscanf(text, "HTTP/1.%*d %d", &head.status);
    for (char *line = strstr(text, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
        if (!strncasecmp(line + 2, "content-length:", 15))
            head.length = atoll(line + 17);
        if (!strncasecmp(line + 2, "connection: close", 17))
            head.closes = 1;
    }
    return head;
}

struct times {
    uint32_t *us;
    size_t count, room;
};

static void times_add(struct times *times, uint64_t ns)
{
    if (times->count == times->room) {
        times->room = times->room ? times->room * 2 : 4096;
        times->us = realloc(times->us, times->room * sizeof *times->us);
        if (!times->us)
            fail("memory");
    }
    times->us[times->count++] = ns / 1000 > UINT32_MAX ? UINT32_MAX : (uint32_t)(ns / 1000);
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void print_times(struct times *t)
{
    qsort(t->us, t->count, sizeof *t->us, by_size);
    size_t n = t->count;
    printf("\"p50_us\": %u, \"p99_us\": %u, \"max_us\": %u", n ? t->us[n / 2] : 0, n ? t->us[n * 99 / 100] : 0,
           n ? t->us[n - 1] : 0);
}

/* ---- load and open: one thread, epoll, HTTP/1.1 without TLS ---- */

struct connection {
    int fd, tries, sent, in_head, have, closes, done, status;
    long long left;
    uint64_t began;
    char request[512], head[HEAD_MOST];
};

static struct {
    int port, epoll, keep;
    uint64_t modulus, done, failed, other, again, ended;
    const char *path;
    struct times times;
    char *piece;
} load;

static void load_ask(struct connection *c)
{
    char path[400];
    fill_in(path, sizeof path, load.path, load.modulus);
    snprintf(c->request, sizeof c->request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    c->sent = c->have = c->closes = 0;
    c->in_head = 1;
    c->began = now_ns();
}

static void load_connect(struct connection *c)
{
    struct sockaddr_in to = loopback(load.port);
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        fail("socket");
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = c };
    c->sent = 0;
    if (connect(c->fd, (void *)&to, sizeof to) && errno != EINPROGRESS) {
        close(c->fd);
        c->fd = -1;
        return;
    }
    if (epoll_ctl(load.epoll, EPOLL_CTL_ADD, c->fd, &event))
        fail("epoll_ctl");
}

static void load_again(struct connection *c);

/* The connection broke in the midst of a request: it is sent again, some times. */
static void load_broken(struct connection *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->have = 0;
    c->in_head = 1;
    if (++c->tries < TRIES && !load.keep) {
        load.again++;
        load_connect(c);
        return;
    }
    load.failed++;
    load.ended++;
    c->done = 1;
    if (!load.keep)
        load_again(c);
}

static void load_again(struct connection *c)
{
    c->tries = c->done = 0;
    load_ask(c);
    if (c->fd < 0)
        load_connect(c);
}

/* Sends what is left of the request. False: the connection broke. */
static int load_send(struct connection *c)
{
    int all = strlen(c->request);
    while (c->sent < all) {
        ssize_t n = send(c->fd, c->request + c->sent, all - c->sent, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == ENOTCONN;
        c->sent += n;
    }
    return 1;
}

static void load_finish(struct connection *c)
{
    times_add(&load.times, now_ns() - c->began);
    if (c->status == 200)
        load.done++;
    else
        load.other++;
    load.ended++;
    c->done = 1;
}

/* Reads until the response has ended (1), nothing more is there (0), or the connection broke (-1). */
static int load_receive(struct connection *c)
{
    for (;;) {
        ssize_t n;
        if (c->in_head) {
            n = recv(c->fd, c->head + c->have, HEAD_MOST - 1 - c->have, 0);
        } else {
            /* Bytes of a body are dropped in the kernel: the client has the smaller share of the CPU time. */
            n = recv(c->fd, load.piece, c->left < PIECE ? c->left : PIECE, MSG_TRUNC);
        }
        if (n < 0)
            return errno == EAGAIN || errno == ENOTCONN ? 0 : -1;
        if (n == 0)
            return -1;
        if (c->in_head) {
            c->have += n;
            c->head[c->have] = 0;
            char *end = strstr(c->head, "\r\n\r\n");
            if (!end && c->have >= HEAD_MOST - 1)
                return -1;
            if (!end)
                continue;
            *end = 0;
            struct head head = parse_head(c->head);
            c->in_head = 0;
            c->closes = head.closes;
            c->status = head.status;
            c->left = head.length - (c->have - (end + 4 - c->head));
        } else {
            c->left -= n;
        }
        if (c->left <= 0)
            return 1;
    }
}

static void load_turn(struct connection *c)
{
    if (c->fd < 0 || c->done)
        return;
    int got = load_send(c) ? load_receive(c) : -1;
    if (got < 0) {
        load_broken(c);
    } else if (got > 0) {
        load_finish(c);
        if (load.keep)
            return;
        if (c->closes) {
            close(c->fd);
            c->fd = -1;
        }
        load_again(c);
        if (c->fd >= 0 && !load_send(c))
            load_broken(c);
    }
}

static void load_events(int wait_ms)
{
    struct epoll_event events[512];
    int n = epoll_wait(load.epoll, events, 512, wait_ms);
    for (int i = 0; i < n; i++)
        load_turn(events[i].data.ptr);
}

static void load_begin(int port, const char *path, uint64_t modulus, uint64_t seed, int keep)
{
    load.port = port;
    load.path = path;
    load.modulus = modulus;
    load.keep = keep;
    load.epoll = epoll_create1(EPOLL_CLOEXEC);
    load.piece = malloc(PIECE);
    random_state ^= seed * 0x9e3779b97f4a7c15ull;
}

static void load_print(double seconds)
{
    printf("{\"done\": %llu, \"other\": %llu, \"failed\": %llu, \"again\": %llu, \"seconds\": %.3f, ",
           (unsigned long long)load.done, (unsigned long long)load.other, (unsigned long long)load.failed,
           (unsigned long long)load.again, seconds);
    print_times(&load.times);
    printf("}\n");
    fflush(stdout);
}

static int command_load(char **a)
{
    int count = atoi(a[1]);
    load_begin(atoi(a[0]), a[3], strtoull(a[4], 0, 10), strtoull(a[5], 0, 10), 0);
    struct connection *all = calloc(count, sizeof *all);
    uint64_t began = now_ns(), end = began + (uint64_t)(atof(a[2]) * 1e9);
    for (int i = 0; i < count; i++) {
        all[i].fd = -1;
        load_again(&all[i]);
        /* The queue of the listening socket has an end. */
        if (i % 256 == 255)
            load_events(1);
    }
    while (now_ns() < end)
        load_events(10);
    load_print((now_ns() - began) / 1e9);
    return 0;
}

static int command_open(char **a)
{
    uint64_t count = strtoull(a[1], 0, 10), outstanding = strtoull(a[3], 0, 10), opened = 0;
    double rate = atof(a[2]);
    load_begin(atoi(a[0]), a[4], 1, 1, 1);
    struct connection *all = calloc(count, sizeof *all);
    uint64_t began = now_ns(), last = began;
    while (load.ended < count && now_ns() - last < 30000000000ull) {
        uint64_t due = rate > 0 ? (uint64_t)((now_ns() - began) / 1e9 * rate) + 1 : count, before = load.ended;
        for (; opened < count && opened < due && opened - load.ended < outstanding; opened++) {
            struct connection *c = &all[opened];
            load_ask(c);
            load_connect(c);
            if (c->fd < 0)
                load_broken(c);
        }
        load_events(1);
        if (load.ended > before)
            last = now_ns();
    }
    /* What has no response within 30 seconds counts like what was refused. */
    load.failed += count - load.ended;
    load_print((now_ns() - began) / 1e9);
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
    return 0;
}

static int command_read(char **a)
{
    struct sockaddr_in to = loopback(atoi(a[0]));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (void *)&to, sizeof to))
        fail("connect");
    uint64_t began = now_ns(), end = began + (uint64_t)(atof(a[1]) * 1e9), bytes = 0;
    dprintf(fd, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", a[2]);
    while (now_ns() < end) {
        struct pollfd waits = { .fd = fd, .events = POLLIN };
        if (poll(&waits, 1, 10) < 1)
            continue;
        ssize_t n = recv(fd, 0, PIECE, MSG_TRUNC | MSG_DONTWAIT);
        if (n <= 0)
            break;
        bytes += n;
    }
    printf("{\"bytes\": %llu, \"seconds\": %.3f}\n", (unsigned long long)bytes, (now_ns() - began) / 1e9);
    return 0;
}

/* ---- probe and handshakes: blocking connections, with TLS and HTTP/2 ---- */

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

static int command_probe(char **a)
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
    struct prober *all = calloc(count, sizeof *all), sum = { 0 };
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    uint64_t began = now_ns();
    for (int i = 0; i < count; i++) {
        all[i].number = i;
        if (pthread_create(&all[i].thread, &attributes, probe_run, &all[i]))
            fail("pthread_create");
    }
    char byte;
    while (read(0, &byte, 1) > 0)
        ;
    probe.stop = 1;
    for (int i = 0; i < count; i++) {
        pthread_join(all[i].thread, 0);
        load.done += all[i].done;
        load.other += all[i].other;
        load.failed += all[i].failed;
        load.again += all[i].again;
        for (size_t n = 0; n < all[i].times.count; n++)
            times_add(&sum.times, all[i].times.us[n] * 1000ull);
    }
    load.times = sum.times;
    load_print((now_ns() - began) / 1e9);
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
            load.done++;
            load.other += strcmp(name, subject) != 0;
            while (line_fill(line))
                line->at = line->have;
        } else {
            load.failed++;
        }
        times_add(&load.times, now_ns() - start);
        line_close(line);
    }
    load_print((now_ns() - began) / 1e9);
    return 0;
}
#endif

int main(int count, char **a)
{
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_TIMERSLACK, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
#ifdef WITH_TLS
    context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_mode(context, SSL_MODE_AUTO_RETRY);
#endif
    if (count == 8 && !strcmp(a[1], "load"))
        return command_load(a + 2);
    if (count == 7 && !strcmp(a[1], "open"))
        return command_open(a + 2);
    if (count == 5 && !strcmp(a[1], "read"))
        return command_read(a + 2);
    if (count == 7 && !strcmp(a[1], "probe"))
        return command_probe(a + 2);
    if (count == 7 && !strcmp(a[1], "handshakes")) {
#ifdef WITH_TLS
        return command_handshakes(a + 2);
#else
        return 3;
#endif
    }
    fprintf(stderr, "client: load, open, read, probe or handshakes\n");
    return 2;
}
