// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tune/Message.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

enum { LOOK_MS = 20, MOST_BYTES = 1 << 28 };

typedef struct head {
  uint32_t kind, number, size;
} head_t;

static bool send_bytes(int socket, const void *data, size_t size) {
  const char *at = data;
  while (size) {
    ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent <= 0)
      return false;
    at += sent;
    size -= (size_t)sent;
  }
  return true;
}

bool hd_message_send(int socket, hd_message_kind_t kind, uint32_t number,
                     const char *text) {
  size_t size = strlen(text);
  head_t head = {(uint32_t)kind, number, (uint32_t)size};
  return size <= MOST_BYTES && send_bytes(socket, &head, sizeof head) &&
         send_bytes(socket, text, size);
}

// Until there is something to read.
static hd_received_t wait_for(int socket, uint64_t deadline_ns,
                              hd_budget_t *budget) {
  for (;;) {
    struct pollfd p = {.fd = socket, .events = POLLIN};
    if (budget)
      hd_budget_check(budget);
    int ready = poll(&p, 1, LOOK_MS);
    if (ready > 0)
      return HD_RECEIVED;
    if (ready < 0 && errno != EINTR)
      return HD_RECEIVED_END;
    if (deadline_ns && hd_clock_ns() > deadline_ns)
      return HD_RECEIVED_LATE;
  }
}

static hd_received_t receive_bytes(int socket, uint64_t deadline_ns,
                                   hd_budget_t *budget, void *data,
                                   size_t size) {
  char *at = data;
  while (size) {
    hd_received_t result = wait_for(socket, deadline_ns, budget);
    if (result != HD_RECEIVED)
      return result;
    ssize_t got = recv(socket, at, size, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
      continue;
    if (got <= 0)
      return HD_RECEIVED_END;
    at += got;
    size -= (size_t)got;
  }
  return HD_RECEIVED;
}

hd_received_t hd_message_receive(int socket, uint64_t deadline_ns,
                                 hd_budget_t *budget, hd_message_t *message) {
  head_t head = {0};
  hd_received_t result =
      receive_bytes(socket, deadline_ns, budget, &head, sizeof head);
  hd_buffer_fini(&message->text);
  if (result == HD_RECEIVED &&
      (head.kind > HD_MESSAGE_TIMES || head.size > MOST_BYTES))
    return HD_RECEIVED_END;
  message->kind = (hd_message_kind_t)head.kind;
  message->number = head.number;
  char piece[4096];
  while (result == HD_RECEIVED && head.size) {
    size_t size = head.size < sizeof piece ? head.size : sizeof piece;
    result = receive_bytes(socket, deadline_ns, budget, piece, size);
    if (result == HD_RECEIVED)
      hd_buffer_write(&message->text, piece, size);
    head.size -= (uint32_t)size;
  }
  return result;
}
