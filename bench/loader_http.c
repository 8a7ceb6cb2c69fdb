/* The HTTP half of the loader: one call in flight on each connection, all on one epoll. */
#include "loader.h"

#define HEAD_LIMIT 16384

enum phase { HEAD, BODY, CHUNK_LINE, CHUNK, CHUNK_END, LAST_LINE, DONE };

typedef struct {
  int fd, status;
  enum phase phase;
  bool closes;
  char session[160], head[HEAD_LIMIT];
  size_t head_size, left, line_size, reply_bytes;
  char line[64], request[72000];
  size_t request_size, sent;
  uint32_t id;
  uint64_t began;
  reply body;
} connection;

static char host[64], path[256];
static int port, poller;
static char input[1 << 18];

static void give_up(const char *what, const char *detail) {
  fprintf(stderr, "loader: %s: %s\n", what, detail);
  exit(3);
}

static void dial(connection *c) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  inet_pton(AF_INET, host, &address.sin_addr);
  c->fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(c->fd, (struct sockaddr *)&address, sizeof address)) give_up("connect", strerror(errno));
  no_delay(c->fd);
  never_block(c->fd);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
  epoll_ctl(poller, EPOLL_CTL_ADD, c->fd, &event);
}

static void redial(connection *c) {
  close(c->fd);
  dial(c);
}

static void watch(connection *c, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = c};
  epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
}

static void push(connection *c, bool was_waiting) {
  while (c->sent < c->request_size) {
    ssize_t wrote = write(c->fd, c->request + c->sent, c->request_size - c->sent);
    if (wrote < 0) break; /* full, or broken: then the next read says so */
    c->sent += (size_t)wrote;
  }
  bool waits = c->sent < c->request_size;
  if (waits != was_waiting) watch(c, EPOLLIN | (waits ? EPOLLOUT : 0u));
}

static void post(connection *c, const char *body, size_t size) {
  char extra[512] = "";
  if (opt.modern) snprintf(extra, sizeof extra, "MCP-Protocol-Version: " MODERN "\r\nMcp-Method: tools/call\r\nMcp-Name: %s\r\n", opt.tool);
  else if (c->session[0]) snprintf(extra, sizeof extra, "MCP-Protocol-Version: " LEGACY "\r\nMcp-Session-Id: %s\r\n", c->session);
  int head = snprintf(c->request, sizeof c->request,
                      "POST %s HTTP/1.1\r\nHost: %s:%d\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
                      "%sContent-Length: %zu\r\n\r\n", path, host, port, extra, size);
  memcpy(c->request + head, body, size);
  c->request_size = (size_t)head + size;
  c->sent = c->head_size = c->body.size = c->body.last_size = c->reply_bytes = 0;
  c->body.first[0] = 0;
  c->phase = HEAD;
  c->began = nanoseconds();
  push(c, false);
}

static void call(connection *c) {
  char body[66000];
  int size = call_text(body, sizeof body, c->id = next_id());
  if (size >= (int)sizeof body) give_up("arguments", "too long");
  post(c, body, (size_t)size);
}

static void read_head(connection *c) {
  slice head = {c->head, c->head_size}, length = header(head, "content-length:"), after = header(head, "connection:");
  c->status = atoi(c->head + 9);
  c->left = length.at ? strtoul(length.at, NULL, 10) : 0;
  c->closes = after.at && !strncasecmp(after.at, "close", 5);
  c->line_size = 0;
  if (header(head, "transfer-encoding:").at) c->phase = CHUNK_LINE;
  else c->phase = c->left ? BODY : DONE;
}

/* Takes bytes of the head; answers how many were of it. */
static size_t take_head(connection *c, const char *bytes, size_t size) {
  size_t before = c->head_size, part = size < HEAD_LIMIT - 1 - before ? size : HEAD_LIMIT - 1 - before;
  memcpy(c->head + before, bytes, part);
  c->head[before + part] = 0;
  size_t from = before > 3 ? before - 3 : 0;
  char *end = memmem(c->head + from, before + part - from, "\r\n\r\n", 4);
  if (!end) {
    if (before + part == HEAD_LIMIT - 1) give_up("head", "too long");
    c->head_size = before + part;
    return part;
  }
  c->head_size = (size_t)(end - c->head) + 4;
  read_head(c);
  return c->head_size - before;
}

static size_t take_line(connection *c, const char *bytes, size_t size) {
  const char *end = memchr(bytes, '\n', size);
  size_t part = end ? (size_t)(end - bytes) + 1 : size;
  for (size_t i = 0; i < part && c->line_size < sizeof c->line - 1; i++) c->line[c->line_size++] = bytes[i];
  c->line[c->line_size] = 0;
  if (!end) return part;
  bool empty = c->line[0] == '\r' || c->line[0] == '\n';
  if (c->phase == CHUNK_LINE) c->phase = (c->left = strtoul(c->line, NULL, 16)) ? CHUNK : LAST_LINE;
  else if (c->phase == CHUNK_END) c->phase = CHUNK_LINE;
  else if (empty) c->phase = DONE;
  c->line_size = 0;
  return part;
}

/* Takes bytes of a response; true when it is whole. */
static bool take(connection *c, const char *bytes, size_t size) {
  c->reply_bytes += size;
  while (size && c->phase != DONE) {
    size_t part;
    if (c->phase == HEAD) part = take_head(c, bytes, size);
    else if (c->phase == BODY || c->phase == CHUNK) {
      part = size < c->left ? size : c->left;
      keep(&c->body, bytes, part);
      if (!(c->left -= part)) c->phase = c->phase == BODY ? DONE : CHUNK_END;
    } else part = take_line(c, bytes, size);
    bytes += part;
    size -= part;
  }
  return c->phase == DONE;
}

static void exchange(connection *c, const char *body) {
  post(c, body, strlen(body));
  do {
    struct pollfd wait = {.fd = c->fd, .events = POLLIN};
    if (poll(&wait, 1, 30000) <= 0) give_up("handshake", "no answer in 30 s");
    ssize_t got = read(c->fd, input, sizeof input);
    if (got <= 0) give_up("handshake", "connection closed");
    take(c, input, (size_t)got);
  } while (c->phase != DONE);
  if (c->status < 200 || c->status > 299) give_up("handshake", c->head);
  if (c->closes) redial(c);
}

static void handshake(connection *c) {
  exchange(c, INITIALIZE);
  slice session = header((slice){c->head, c->head_size}, "mcp-session-id:");
  snprintf(c->session, sizeof c->session, "%.*s", (int)session.size, session.at ? session.at : "");
  exchange(c, INITIALIZED);
}

static void finish(connection *c, uint64_t now) {
  const char *reason = c->status == 200 ? fault(&c->body, c->id) : "status";
  if (reason) count_fault(reason, &c->body);
  else count_call(c->began, now, c->reply_bytes);
  if (c->closes) redial(c);
  if (time_left(now)) call(c);
}

static void step(connection *c, uint32_t events) {
  if (events & EPOLLOUT) push(c, true);
  if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR))) return;
  ssize_t got = read(c->fd, input, sizeof input);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) {
    count_fault("connection closed", NULL);
    redial(c);
    if (time_left(nanoseconds())) call(c);
  } else if (take(c, input, (size_t)got)) finish(c, nanoseconds());
}

void run_http(const char *url) {
  if (sscanf(url, "http://%63[^:/]:%d%255s", host, &port, path) != 3) give_up("not http://HOST:PORT/PATH", url);
  poller = epoll_create1(0);
  connection **all = calloc((size_t)opt.width, sizeof *all);
  for (int i = 0; i < opt.width; i++) {
    dial(all[i] = calloc(1, sizeof **all));
    if (!opt.modern) handshake(all[i]);
  }
  start_clock();
  for (int i = 0; i < opt.width; i++) call(all[i]);
  struct epoll_event ready[256];
  while (time_left(nanoseconds())) {
    int count = epoll_wait(poller, ready, 256, 100);
    for (int i = 0; i < count; i++) step(ready[i].data.ptr, ready[i].events);
  }
}
