/* Loads a server over HTTP/1.1 without TLS, by one thread with epoll; for benches/scale.
 *
 *   load keep PORT CONNECTIONS SECONDS PATH MODULUS SEED
 *   load open PORT COUNT PER_SECOND OUTSTANDING PATH
 *   load read PORT SECONDS PATH MEGABYTES_PER_SECOND
 *
 * `keep` asks for paths by chance on keep-alive connections, each for the next one as soon as it has a response. It says
 * `ready` when each has had one, and begins to measure when it reads a byte. `open` opens connections at a rate (0: as fast
 * as OUTSTANDING ones at a time allow), makes one request on each, and keeps them until its standard input ends. `read`
 * reads one response, for so long at most, at a rate (0: as fast as it comes). Each prints one line of JSON.
 */
#include "client.h"

#define OPENED_WITHIN_NS 10000000000ull
enum { HEAD_MOST = 2048, PIECE = 256 * 1024, TRIES = 3 };

struct connection {
    int fd, tries, sent, in_head, have, closes, done, status, answered;
    long long left;
    uint64_t began;
    char request[512], head[HEAD_MOST];
};

static struct {
    int port, epoll, keep;
    uint64_t modulus, ended, answering;
    const char *path;
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
        total.failed++;
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
        total.again++;
        load_connect(c);
        return;
    }
    total.failed++;
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
    times_add(&total.times, now_ns() - c->began);
    if (c->status == 200)
        total.done++;
    else
        total.other++;
    load.ended++;
    load.answering += !c->answered;
    c->done = c->answered = 1;
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

static int command_keep(char **a)
{
    int count = atoi(a[1]);
    load_begin(atoi(a[0]), a[3], strtoull(a[4], 0, 10), strtoull(a[5], 0, 10), 0);
    struct connection *all = calloc(count, sizeof *all);
    uint64_t opened = now_ns() + OPENED_WITHIN_NS;
    for (int i = 0; i < count; i++) {
        all[i].fd = -1;
        load_again(&all[i]);
        /* The queue of the listening socket has an end. */
        if (i % 256 == 255)
            load_events(1);
    }
    while (load.answering < (uint64_t)count && now_ns() < opened)
        load_events(10);
    /* Who reads the server's CPU time reads it now: opening connections is no part of what is measured. */
    printf("ready\n");
    fflush(stdout);
    char byte;
    if (read(0, &byte, 1) < 0)
        return 1;
    total.done = total.again = total.times.count = 0;
    uint64_t began = now_ns(), end = began + (uint64_t)(atof(a[2]) * 1e9);
    /* A machine that has much other work may leave no time for a response. */
    while (now_ns() < end || (!total.done && now_ns() < end + OPENED_WITHIN_NS))
        load_events(10);
    total_print((now_ns() - began) / 1e9);
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
            load.ended += c->fd < 0;
        }
        load_events(1);
        if (load.ended > before)
            last = now_ns();
    }
    /* What has no response within 30 seconds counts like what was refused. */
    total.failed += count - load.ended;
    total_print((now_ns() - began) / 1e9);
    wait_for_end_of_input();
    return 0;
}

static int command_read(char **a)
{
    struct sockaddr_in to = loopback(atoi(a[0]));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (void *)&to, sizeof to))
        fail("connect");
    uint64_t began = now_ns(), end = began + (uint64_t)(atof(a[1]) * 1e9), bytes = 0;
    double per_ns = atof(a[3]) * 1e6 / 1e9;
    dprintf(fd, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", a[2]);
    while (now_ns() < end) {
        struct pollfd waits = { .fd = fd, .events = POLLIN };
        if (poll(&waits, 1, 10) < 1)
            continue;
        ssize_t n = recv(fd, 0, PIECE, MSG_TRUNC | MSG_DONTWAIT);
        if (n <= 0)
            break;
        bytes += n;
        uint64_t due = per_ns > 0 ? began + (uint64_t)(bytes / per_ns) : 0, now = now_ns();
        if (due > now)
            nanosleep(&(struct timespec){ .tv_sec = (due - now) / 1000000000, .tv_nsec = (due - now) % 1000000000 }, 0);
    }
    printf("{\"bytes\": %llu, \"seconds\": %.3f}\n", (unsigned long long)bytes, (now_ns() - began) / 1e9);
    return 0;
}

int main(int count, char **a)
{
    begin();
    if (count == 8 && !strcmp(a[1], "keep"))
        return command_keep(a + 2);
    if (count == 7 && !strcmp(a[1], "open"))
        return command_open(a + 2);
    if (count == 6 && !strcmp(a[1], "read"))
        return command_read(a + 2);
    fprintf(stderr, "load: keep, open or read\n");
    return 2;
}
