// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Tune/Process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// What posix_spawn() takes for arguments it only reads.
static char *const *arguments_of(const char *const *command) {
  return (char *const *)(uintptr_t)command;
}

static int spawn(pid_t *pid, const char *const *command, int socket,
                 bool loud) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  // The tools block signals for their threads.
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  posix_spawn_file_actions_adddup2(&actions, socket, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  if (!loud)
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  int error = posix_spawn(pid, command[0], &actions, &attributes,
                          arguments_of(command), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

bool hd_tune_process_start(hd_tune_process_t *process,
                           const char *const *command, bool loud) {
  int pair[2];
  *process = (hd_tune_process_t){0};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return false;
  pid_t pid;
  int error = spawn(&pid, command, pair[1], loud);
  close(pair[1]);
  if (error) {
    close(pair[0]);
    return false;
  }
  *process = (hd_tune_process_t){pid, pair[0]};
  return true;
}

void hd_tune_process_end(hd_tune_process_t *process) {
  if (!process->pid)
    return;
  close(process->socket);
  kill(process->pid, SIGKILL);
  while (waitpid(process->pid, NULL, 0) < 0 && errno == EINTR)
    ;
  *process = (hd_tune_process_t){0};
}
