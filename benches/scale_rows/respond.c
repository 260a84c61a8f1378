/* Answers each request with 1 KB, over the protocols of gateways, by one thread with epoll; for benches/scale.
 *
 *   respond KIND PORT       KIND: fastcgi, scgi, uwsgi, memcached
 *
 * Bodies of requests are read and dropped. It prints one line of JSON when it listens, and ends with its standard input. It knows of
 * each protocol what its client sends here: one request at a time on a connection, but for memcached.
 */
#include "client.h"

enum { BODY = 1024, ROOM = 1 << 18 };

struct peer {
    int fd, keep;
    size_t have;
    /* Of a record larger than the buffer, what is to be skipped. */
    size_t left;
    unsigned char in[16 * 1024];
};

static struct {
    int epoll;
    const char *kind;
    char answer[2048], *out;
    size_t answer_bytes;
} own;

/* The answer of the protocols that have a head as of CGI. */
static void make_answer(void)
{
    char text[2048];
    int head = sprintf(text, "Status: 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n", BODY);
    memset(text + head, 'x', BODY);
    size_t bytes = (size_t)head + BODY;
    if (strcmp(own.kind, "fastcgi")) {
        memcpy(own.answer, text, own.answer_bytes = bytes);
        return;
    }
    unsigned char *to = (unsigned char *)own.answer;
    unsigned char stdout_head[8] = { 1, 6, 0, 1, (unsigned char)(bytes >> 8), (unsigned char)bytes, 0, 0 };
    unsigned char ends[24] = { 1, 6, 0, 1, 0, 0, 0, 0, 1, 3, 0, 1, 0, 8 };
    memcpy(to, stdout_head, 8);
    memcpy(to + 8, text, bytes);
    memcpy(to + 8 + bytes, ends, 24);
    own.answer_bytes = 8 + bytes + 24;
}

static void end_peer(struct peer *peer)
{
    close(peer->fd);
    free(peer);
}

/* Sends all; a socket that takes no more ends its connection, since no client here leaves answers unread. */
static int send_all(struct peer *peer, const char *text, size_t bytes)
{
    return send(peer->fd, text, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

static void drop(struct peer *peer, size_t bytes)
{
    peer->have -= bytes;
    memmove(peer->in, peer->in + bytes, peer->have);
}

/* 1: a request is complete; 0: more is to come; -1: that is no request. */
static int take_fastcgi(struct peer *peer)
{
    while (peer->have >= 8) {
        unsigned char *head = peer->in;
        size_t bytes = (size_t)(head[4] << 8 | head[5]), all = 8 + bytes + head[6];
        if (head[0] != 1 || (all > sizeof peer->in && head[1] != 5))
            return -1;
        if (all > sizeof peer->in) {
            peer->left = all - peer->have;
            peer->have = 0;
            return 0;
        }
        if (peer->have < all)
            return 0;
        if (head[1] == 1)
            peer->keep = head[10] & 1;
        int over = head[1] == 5 && bytes == 0;
        drop(peer, all);
        if (over)
            return 1;
    }
    return 0;
}

/* Both have a head of known length, and here no body. */
static int take_head(struct peer *peer)
{
    size_t all;
    if (!strcmp(own.kind, "uwsgi")) {
        if (peer->have < 4)
            return 0;
        all = 4 + (size_t)(peer->in[1] | peer->in[2] << 8);
    } else {
        unsigned char *colon = memchr(peer->in, ':', peer->have);
        if (!colon)
            return peer->have > 8 ? -1 : 0;
        all = (size_t)(colon - peer->in) + 1 + (size_t)atoi((char *)peer->in) + 1;
    }
    if (all > sizeof peer->in)
        return -1;
    if (peer->have < all)
        return 0;
    drop(peer, all);
    return 1;
}

/* Answers each `get KEY`; the answers of one read leave in one write. */
static int answer_memcached(struct peer *peer)
{
    size_t at = 0, bytes = 0;
    for (;;) {
        unsigned char *end = memchr(peer->in + at, '\n', peer->have - at);
        if (!end)
            break;
        int key = (int)(end - peer->in - at) - 5;
        if (key < 1 || key > 250 || memcmp(peer->in + at, "get ", 4) || bytes + BODY + 300 > ROOM)
            return -1;
        bytes += (size_t)sprintf(own.out + bytes, "VALUE %.*s 0 %d\r\n", key, peer->in + at + 4, BODY);
        memset(own.out + bytes, 'x', BODY);
        bytes += BODY;
        memcpy(own.out + bytes, "\r\nEND\r\n", 7);
        bytes += 7;
        at = (size_t)(end - peer->in) + 1;
    }
    drop(peer, at);
    return !bytes || send_all(peer, own.out, bytes) ? 0 : -1;
}

/* Reads once; frees the peer where it is over. */
static void serve(struct peer *peer)
{
    ssize_t read = recv(peer->fd, peer->in + peer->have, sizeof peer->in - peer->have, 0);
    if (read < 0 && errno == EAGAIN)
        return;
    if (read <= 0)
        return end_peer(peer);
    peer->have += (size_t)read;
    size_t skipped = peer->have < peer->left ? peer->have : peer->left;
    peer->left -= skipped;
    drop(peer, skipped);
    int said = !strcmp(own.kind, "memcached") ? answer_memcached(peer)
        : !strcmp(own.kind, "fastcgi")        ? take_fastcgi(peer)
                                              : take_head(peer);
    if (said < 0 || (said && (!send_all(peer, own.answer, own.answer_bytes) || !peer->keep)))
        end_peer(peer);
}

static void accept_all(int listener)
{
    int fd, one = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct peer *peer = calloc(1, sizeof *peer);
        if (!peer)
            fail("memory");
        peer->fd = fd;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = peer };
        if (epoll_ctl(own.epoll, EPOLL_CTL_ADD, fd, &event))
            fail("epoll_ctl");
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    begin();
    own.kind = argv[1];
    own.out = malloc(ROOM);
    make_answer();
    struct sockaddr_in at = loopback(atoi(argv[2]));
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (void *)&at, sizeof at) || listen(listener, 4096))
        fail("listen");
    own.epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event listening = { .events = EPOLLIN }, input = { .events = EPOLLIN, .data.ptr = &own };
    if (epoll_ctl(own.epoll, EPOLL_CTL_ADD, listener, &listening) || epoll_ctl(own.epoll, EPOLL_CTL_ADD, 0, &input))
        fail("epoll_ctl");
    puts("{}");
    fflush(stdout);
    for (;;) {
        struct epoll_event events[256];
        int count = epoll_wait(own.epoll, events, 256, -1);
        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &own)
                return 0;
            if (events[i].data.ptr)
                serve(events[i].data.ptr);
            else
                accept_all(listener);
        }
    }
}
