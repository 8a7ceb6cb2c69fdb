/* The stdio half of the loader: a child process and N calls in flight on its pipes. */
#include "loader.h"

#define SLOTS 65536u /* ids run upwards, so that a slot is free again long before its next use */

static uint64_t began[SLOTS]; /* 0: no call in flight under this id */
static uint32_t ids[SLOTS];
static int to_child, from_child, in_flight;
static enum { HANDSHAKE, LISTING, CALLING } phase;

static void send_text(const char *text, size_t size) {
  while (size) {
    ssize_t wrote = write(to_child, text, size);
    if (wrote < 0) { fprintf(stderr, "loader: write: %s\n", strerror(errno)); exit(3); }
    text += wrote;
    size -= (size_t)wrote;
  }
}

static void call(void) {
  static char text[66000];
  uint32_t id = next_id();
  int size = call_text(text, sizeof text - 1, id);
  text[size++] = '\n';
  ids[id % SLOTS] = id;
  began[id % SLOTS] = nanoseconds();
  in_flight++;
  send_text(text, (size_t)size);
}

/* A server behind the child may still be starting: its tool is called once it is listed. */
static void list(void) {
  char text[1024];
  int size = list_text(text, sizeof text - 1, next_id());
  text[size++] = '\n';
  phase = LISTING;
  send_text(text, (size_t)size);
}

/* The id of a reply: by its members when it is whole, else as text at an edge. */
static uint32_t id_of(const reply *r) {
  if (r->size <= EDGE) {
    slice message = {r->first, r->size};
    slice id = member(message, "method").at ? (slice){NULL, 0} : member(message, "id");
    return id.at ? (uint32_t)strtoul(id.at, NULL, 10) : 0;
  }
  const char *at = memmem(r->first, EDGE, "\"id\":", 5);
  if (!at) at = memmem(r->last, r->last_size, "\"id\":", 5);
  return at ? (uint32_t)strtoul(at + 5, NULL, 10) : 0;
}

static void take_reply(const reply *r) {
  uint32_t id = id_of(r);
  uint64_t now = nanoseconds();
  if (!id) return; /* a notification */
  if (phase == HANDSHAKE) {
    send_text(INITIALIZED, strlen(INITIALIZED));
    send_text("\n", 1);
    list();
    return;
  }
  if (phase == LISTING) {
    if (lists_tool(r)) {
      phase = CALLING;
      start_clock();
    } else {
      usleep(20000);
      list();
    }
    return;
  }
  if (ids[id % SLOTS] != id || !began[id % SLOTS]) { count_fault("an answer too many", r); return; }
  const char *reason = fault(r, id);
  if (reason) count_fault(reason, r);
  else count_call(began[id % SLOTS], now, r->size);
  began[id % SLOTS] = 0;
  in_flight--;
}

static void take(reply *r, const char *bytes, size_t size) {
  while (size) {
    const char *newline = memchr(bytes, '\n', size);
    size_t part = newline ? (size_t)(newline - bytes) : size;
    keep(r, bytes, part);
    if (!newline) return;
    if (r->size) take_reply(r);
    r->size = r->last_size = 0;
    bytes += part + 1;
    size -= part + 1;
  }
}

static pid_t start(char **command) {
  int there[2], back[2];
  if (pipe(there) || pipe(back)) exit(3);
  fcntl(there[1], F_SETPIPE_SZ, 1 << 20);
  fcntl(back[1], F_SETPIPE_SZ, 1 << 20);
  pid_t child = fork();
  if (!child) {
    dup2(there[0], 0);
    dup2(back[1], 1);
    close(there[0]); close(there[1]); close(back[0]); close(back[1]);
    execvp(command[0], command);
    perror(command[0]);
    _exit(127);
  }
  close(there[0]);
  close(back[1]);
  to_child = there[1];
  from_child = back[0];
  return child;
}

static void stop(pid_t child) {
  close(to_child);
  close(from_child);
  for (int waited = 0; waited < 3000; waited += 20) {
    if (waitpid(child, NULL, WNOHANG) == child) return;
    if (waited == 1000) kill(child, SIGTERM);
    usleep(20000);
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

void run_stdio(char **command) {
  static char input[1 << 18];
  static reply r;
  pid_t child = start(command);
  if (opt.modern) list();
  else {
    send_text(INITIALIZE, strlen(INITIALIZE));
    send_text("\n", 1);
  }
  while (phase != CALLING || time_left(nanoseconds())) {
    while (phase == CALLING && in_flight < opt.width) call();
    ssize_t got = read(from_child, input, sizeof input);
    if (got <= 0) {
      fprintf(stderr, "loader: the child closed its output\n");
      exit(3);
    }
    take(&r, input, (size_t)got);
  }
  stop(child);
}
