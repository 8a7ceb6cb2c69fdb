/* An MCP server that costs a few microseconds a call: the constant part of every figure.
 *   upstream --port N [--sse] [--strict] [--era legacy|modern]     Streamable HTTP on 127.0.0.1
 *   upstream --stdio [--era legacy|modern]                         lines on stdin and stdout
 * Tools: echo {message} answers the same text; blob {kb} answers kb KiB of text with escapes in it.
 * --sse answers calls as one event; --strict answers 404 to a session that this process did not open. */
#include "wire.h"

#define ROW "lot 00718 | state \\\"held\\\" | nine amber jugs by the north quay\\n" /* 64 bytes as sent */
#define BLOCK (8u << 20)
#define BLOB_LIMIT_KB (256u << 10)
#define INPUT_LIMIT (64u << 20)
#define PIECES (BLOB_LIMIT_KB / (BLOCK >> 10) + 6)

static const char *TOOLS =
  "\"tools\":[{\"name\":\"echo\",\"description\":\"Answer the message\",\"inputSchema\":{\"type\":\"object\","
  "\"properties\":{\"message\":{\"type\":\"string\"}},\"required\":[\"message\"]}},"
  "{\"name\":\"blob\",\"description\":\"Answer kb KiB of text\",\"inputSchema\":{\"type\":\"object\","
  "\"properties\":{\"kb\":{\"type\":\"integer\"}},\"required\":[\"kb\"]}}]";
static const char *CACHED = ",\"ttlMs\":3600000,\"cacheScope\":\"public\"";
static const char *SERVER = "{\"name\":\"bench-upstream\",\"version\":\"1\"}";

static char *block;
static const char *only_era = "";
static bool answers_events, strict_sessions;
static unsigned sessions_opened;

/* One answer: `head`, then `rows_size` bytes of rows, then `tail`. An empty head means no answer is due. */
typedef struct {
  char head[1 << 17], tail[32];
  size_t head_size, rows_size, tail_size;
  bool opens_session;
} answer;

#define ADD(out, ...) \
  ((out)->head_size += (size_t)snprintf((out)->head + (out)->head_size, sizeof (out)->head - (out)->head_size, __VA_ARGS__))

static void refuse(answer *out, slice id, int code, const char *reason) {
  out->head_size = 0;
  ADD(out, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"error\":{\"code\":%d,\"message\":\"%s\"}}", (int)id.size, id.at, code, reason);
}

static void call_tool(answer *out, slice id, slice params) {
  slice name = member(params, "name"), arguments = member(params, "arguments");
  if (same(name, "\"echo\"")) {
    slice message = member(arguments, "message");
    if (!message.at || message.size + 1024 > sizeof out->head) { refuse(out, id, -32602, "echo needs a short message"); return; }
    ADD(out, "\"content\":[{\"type\":\"text\",\"text\":%.*s}],\"isError\":false}}", (int)message.size, message.at);
  } else if (same(name, "\"blob\"")) {
    slice kb = member(arguments, "kb");
    size_t wanted = kb.at ? strtoul(kb.at, NULL, 10) : 1;
    if (wanted > BLOB_LIMIT_KB) { refuse(out, id, -32602, "kb is too large"); return; }
    ADD(out, "\"content\":[{\"type\":\"text\",\"text\":\"");
    out->rows_size = wanted << 10;
    out->tail_size = (size_t)sprintf(out->tail, "\"}],\"isError\":false}}");
  } else refuse(out, id, -32602, "Unknown tool");
}

static void respond(slice message, answer *out) {
  slice id = member(message, "id"), method = member(message, "method"), params = member(message, "params");
  out->head_size = out->rows_size = out->tail_size = 0;
  out->opens_session = false;
  if (!id.at || !method.at) return;
  bool handshake = same(method, "\"initialize\"");
  bool modern = !handshake && params.at && memmem(params.at, params.size, "\"" MODERN "\"", 12);
  if ((modern && same((slice){only_era, strlen(only_era)}, "legacy")) || (handshake && same((slice){only_era, strlen(only_era)}, "modern"))) {
    refuse(out, id, -32601, "Method not found");
    return;
  }
  ADD(out, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,\"result\":{%s", (int)id.size, id.at, modern ? "\"resultType\":\"complete\"," : "");
  if (same(method, "\"tools/call\"")) call_tool(out, id, params);
  else if (same(method, "\"tools/list\"")) ADD(out, "%s%s}}", TOOLS, modern ? CACHED : "");
  else if (handshake) {
    slice asked = member(params, "protocolVersion");
    if (!asked.at || same(asked, "\"" MODERN "\"")) asked = (slice){"\"" LEGACY "\"", 12};
    ADD(out, "\"protocolVersion\":%.*s,\"capabilities\":{\"tools\":{}},\"serverInfo\":%s}}", (int)asked.size, asked.at, SERVER);
    out->opens_session = true;
  } else if (modern && same(method, "\"server/discover\"")) {
    ADD(out, "\"supportedVersions\":[\"" MODERN "\"],\"capabilities\":{\"tools\":{}}%s,\"_meta\":{\"io.modelcontextprotocol/serverInfo\":%s}}}", CACHED, SERVER);
  } else if (!modern && same(method, "\"ping\"")) ADD(out, "}}");
  else refuse(out, id, -32601, "Method not found");
}

/* The rows are written on first use, so that an upstream that only echoes stays small. */
static void fill_block(void) {
  block = malloc(BLOCK);
  for (size_t at = 0; at < BLOCK; at += sizeof ROW - 1) memcpy(block + at, ROW, sizeof ROW - 1);
}

/* Puts the answer's parts into `pieces`; answers their number. */
static int lay_out(answer *out, struct iovec *pieces) {
  int count = 0;
  if (out->rows_size && !block) fill_block();
  pieces[count++] = (struct iovec){out->head, out->head_size};
  for (size_t left = out->rows_size; left;) {
    size_t part = left < BLOCK ? left : BLOCK;
    pieces[count++] = (struct iovec){block, part};
    left -= part;
  }
  if (out->tail_size) pieces[count++] = (struct iovec){out->tail, out->tail_size};
  return count;
}

/* Writes pieces from `*next` on. 1: all written, 0: the descriptor is full, -1: it is broken. */
static int write_pieces(int fd, struct iovec *pieces, int *next, int count) {
  while (*next < count) {
    ssize_t wrote = writev(fd, pieces + *next, count - *next);
    if (wrote < 0) return errno == EAGAIN ? 0 : -1;
    for (; *next < count && (size_t)wrote >= pieces[*next].iov_len; ++*next) wrote -= (ssize_t)pieces[*next].iov_len;
    if (*next < count) {
      pieces[*next].iov_base = (char *)pieces[*next].iov_base + wrote;
      pieces[*next].iov_len -= (size_t)wrote;
    }
  }
  return 1;
}

static int serve_stdio(void) {
  static answer out;
  size_t room = 1 << 20, filled = 0, searched = 0;
  char *input = malloc(room), *newline;
  for (;;) {
    ssize_t got = read(0, input + filled, room - filled);
    if (got <= 0) return 0;
    filled += (size_t)got;
    size_t start = 0;
    while ((newline = memchr(input + searched, '\n', filled - searched))) {
      respond((slice){input + start, (size_t)(newline - input) - start}, &out);
      start = searched = (size_t)(newline - input) + 1;
      if (!out.head_size) continue;
      struct iovec pieces[PIECES];
      int count = lay_out(&out, pieces), next = 0;
      pieces[count++] = (struct iovec){(char *)"\n", 1};
      if (write_pieces(1, pieces, &next, count) < 0) return 1;
    }
    memmove(input, input + start, filled - start);
    searched = filled -= start;
    if (filled == room && room < INPUT_LIMIT) input = realloc(input, room *= 2);
  }
}

typedef struct {
  int fd, next, count;
  bool awaits_room;
  char *input, head[512];
  size_t filled, room;
  struct iovec pieces[PIECES];
  answer out;
} connection;

static void status_only(connection *c, const char *status) {
  int size = snprintf(c->head, sizeof c->head, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", status);
  c->pieces[0] = (struct iovec){c->head, (size_t)size};
  c->count = 1;
}

static bool knows(slice session) {
  char own[24];
  int size = snprintf(own, sizeof own, "-%d", (int)getpid());
  return session.size > (size_t)size && !memcmp(session.at + session.size - size, own, (size_t)size);
}

static void respond_http(connection *c, slice head, slice body) {
  slice session = header(head, "mcp-session-id:");
  c->next = 0;
  if (strict_sessions && session.at && !knows(session)) { status_only(c, "404 Not Found"); return; }
  if (!memcmp(head.at, "DELETE ", 7)) { status_only(c, "200 OK"); return; }
  if (memcmp(head.at, "POST ", 5)) { status_only(c, "405 Method Not Allowed"); return; }
  respond(body, &c->out);
  if (!c->out.head_size) { status_only(c, "202 Accepted"); return; }
  char opened[64] = "";
  if (c->out.opens_session) snprintf(opened, sizeof opened, "Mcp-Session-Id: bench-%u-%d\r\n", ++sessions_opened, (int)getpid());
  static const char *before = "event: message\ndata: ", *after = "\n\n";
  size_t total = c->out.head_size + c->out.rows_size + c->out.tail_size + (answers_events ? strlen(before) + strlen(after) : 0);
  int size = snprintf(c->head, sizeof c->head, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%sContent-Length: %zu\r\n\r\n",
                      answers_events ? "text/event-stream" : "application/json", opened, total);
  c->count = 0;
  c->pieces[c->count++] = (struct iovec){c->head, (size_t)size};
  if (answers_events) c->pieces[c->count++] = (struct iovec){(char *)before, strlen(before)};
  c->count += lay_out(&c->out, c->pieces + c->count);
  if (answers_events) c->pieces[c->count++] = (struct iovec){(char *)after, strlen(after)};
}

/* Joins the chunks of a body in place. Answers the bytes they took, 0 while some are missing; `size` gets the joined size. */
static size_t join_chunks(char *body, size_t available, size_t *size) {
  size_t at = 0, joined = 0;
  for (int pass = 0; pass < 2; pass++) /* the first pass only looks whether all is there */
    for (at = joined = 0;;) {
      char *line = memmem(body + at, available - at, "\r\n", 2);
      if (!line) return 0;
      size_t chunk = strtoul(body + at, NULL, 16);
      at = (size_t)(line - body) + 2;
      if (available - at < chunk + 2) return 0;
      if (pass) memmove(body + joined, body + at, chunk);
      joined += chunk;
      at += chunk + 2;
      if (!chunk) break;
    }
  *size = joined;
  return at;
}

/* Serves one request of the input. 1: served, 0: not all of it is there. */
static int serve_one(connection *c) {
  char *end = c->filled ? memmem(c->input, c->filled, "\r\n\r\n", 4) : NULL;
  if (!end) return 0;
  slice head = {c->input, (size_t)(end - c->input) + 4};
  slice length = header(head, "content-length:"), body = {c->input + head.size, 0};
  size_t used;
  if (header(head, "transfer-encoding:").at) {
    if (!(used = join_chunks(c->input + head.size, c->filled - head.size, &body.size))) return 0;
  } else {
    used = body.size = length.at ? strtoul(length.at, NULL, 10) : 0;
    if (c->filled - head.size < used) return 0;
  }
  respond_http(c, head, body);
  used += head.size;
  c->filled -= used;
  if (c->filled) memmove(c->input, c->input + used, c->filled);
  return 1;
}

static void accept_all(int listener, int poller) {
  int fd;
  while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
    connection *c = calloc(1, sizeof *c);
    *c = (connection){.fd = fd, .room = 1 << 16, .input = malloc(1 << 16)};
    no_delay(fd);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = c};
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
  }
}

/* Reads what is there and serves it; false when the connection is over. */
static bool step(connection *c, int poller, uint32_t events) {
  if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
    if (c->filled == c->room && c->room < INPUT_LIMIT) c->input = realloc(c->input, c->room *= 2);
    ssize_t got = read(c->fd, c->input + c->filled, c->room - c->filled);
    if (got == 0 || (got < 0 && errno != EAGAIN)) return false;
    if (got > 0) c->filled += (size_t)got;
  }
  for (;;) {
    int written = write_pieces(c->fd, c->pieces, &c->next, c->count);
    if (written < 0) return false;
    if (c->awaits_room != !written) {
      c->awaits_room = !written;
      struct epoll_event event = {.events = EPOLLIN | (c->awaits_room ? EPOLLOUT : 0u), .data.ptr = c};
      epoll_ctl(poller, EPOLL_CTL_MOD, c->fd, &event);
    }
    if (!written || !serve_one(c)) return true;
  }
}

static int serve_http(int port) {
  int listener = socket(AF_INET, SOCK_STREAM, 0), poller = epoll_create1(0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) { perror("upstream"); return 1; }
  never_block(listener);
  struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL}, ready[128];
  epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
  for (;;) {
    int count = epoll_wait(poller, ready, 128, -1);
    for (int i = 0; i < count; i++) {
      connection *c = ready[i].data.ptr;
      if (!c) { accept_all(listener, poller); continue; }
      if (step(c, poller, ready[i].events)) continue;
      close(c->fd);
      free(c->input);
      free(c);
    }
  }
}

int main(int argc, char **argv) {
  int port = 0;
  bool stdio = false;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--stdio")) stdio = true;
    else if (!strcmp(argv[i], "--sse")) answers_events = true;
    else if (!strcmp(argv[i], "--strict")) strict_sessions = true;
    else if (!strcmp(argv[i], "--port") && i + 1 < argc) port = atoi(argv[++i]);
    else if (!strcmp(argv[i], "--era") && i + 1 < argc) only_era = argv[++i];
    else { fprintf(stderr, "upstream: unknown option %s\n", argv[i]); return 2; }
  }
  signal(SIGPIPE, SIG_IGN);
  return stdio ? serve_stdio() : serve_http(port);
}
_Static_assert(sizeof ROW == 65, "a row has 64 bytes");
