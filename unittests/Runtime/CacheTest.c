// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A cache's bound: what was asked for least recently goes, nothing else does,
// and it holds under many processes, whatever became of the count. Nobody waits
// for it.
#include "Runtime/Cache.h"
#include "Support/Budget.h"
#include "UnitTest.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PROCESSES = 6, ENTRIES = 300 };

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);

static bool fails; // strdup() does.
static char folder[64];
static int64_t found; // Bytes of the entries, in pages.

static int count_entry(const char *path, const struct stat *status, int type,
                       struct FTW *walk) {
  if (type == FTW_F && walk->level == 2 && strlen(path + walk->base) == 30)
    found += (status->st_size + PAGE - 1) / PAGE * PAGE;
  return 0;
}

static int64_t bytes_there(void) {
  found = 0;
  assert_int_equal(nftw(folder, count_entry, 8, FTW_PHYS), 0);
  return found;
}

static int remove_one(const char *path, const struct stat *status, int type,
                      struct FTW *walk) {
  (void)status, (void)type, (void)walk;
  return remove(path);
}

static int set_up(void **state) {
  (void)state;
  strcpy(folder, "/tmp/hidet-cache-test-XXXXXX");
  return !mkdtemp(folder);
}

static int tear_down(void **state) {
  (void)state;
  return nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static hd_cache_key_t key_of(int number) {
  return hd_cache_key("test", &number, sizeof(number));
}

// Entries say their number over and over.
static void put(const hd_cache_t *cache, int number, size_t bytes) {
  hd_buffer_t entry = {0};
  for (size_t i = 0; i < bytes / sizeof(number); i++)
    hd_buffer_write(&entry, (const char *)&number, sizeof(number));
  hd_cache_put(cache, key_of(number), &entry);
  hd_buffer_fini(&entry);
}

static bool get(const hd_cache_t *cache, int number) {
  hd_buffer_t entry = {0};
  bool ok = hd_cache_get(cache, key_of(number), &entry);
  for (size_t i = 0; ok && i < entry.size / sizeof(number); i++) {
    int word;
    memcpy(&word, entry.data + i * sizeof(word), sizeof(word));
    assert_int_equal(word, number);
  }
  hd_buffer_fini(&entry);
  return ok;
}

// File times have the grain of the kernel's ticks.
static void wait_tick(void) {
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static void test_least_recent(void **state) {
  (void)state;
  hd_cache_t *cache = hd_cache_open(folder, 10 * PAGE);
  for (int i = 0; i < 10; i++) {
    put(cache, i, PAGE / 2);
    wait_tick();
  }
  assert_int_equal(bytes_there(), 10 * PAGE);
  assert_true(get(cache, 0)); // From now on 1 and 2 are the oldest.
  wait_tick();
  put(cache, 10, PAGE / 2);
  assert_int_equal(bytes_there(), 9 * PAGE);
  assert_true(get(cache, 0));
  assert_false(get(cache, 1));
  assert_false(get(cache, 2));
  for (int i = 3; i <= 10; i++)
    assert_true(get(cache, i));
  hd_cache_close(cache);
}

static void test_too_large(void **state) {
  (void)state;
  hd_cache_t *cache = hd_cache_open(folder, 4 * PAGE);
  put(cache, 1, PAGE / 2);
  put(cache, 2, 4 * PAGE); // With its head more than four pages.
  assert_true(get(cache, 1));
  assert_false(get(cache, 2));
  put(cache, 3, 3 * PAGE); // As many, all of them.
  assert_false(get(cache, 1));
  assert_true(get(cache, 3));
  hd_cache_close(cache);
}

static void write_file(const char *name, const char *text) {
  char path[128];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
}

static bool is_there(const char *name) {
  char path[128];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  return access(path, F_OK) == 0;
}

static void test_others_stay(void **state) {
  (void)state;
  char path[128];
  hd_cache_t *cache = hd_cache_open(folder, 4 * PAGE);
  snprintf(path, sizeof(path), "%s/ab", folder);
  assert_int_equal(mkdir(path, 0777), 0);
  write_file("tune.db", "measured");
  write_file("ab/letter.txt", "dear reader");
  write_file("ab/.hidet-1-0", "half of an entry");
  write_file("ab/.hidet-2-0", "one that is being written");
  snprintf(path, sizeof(path), "%s/ab/.hidet-1-0", folder);
  struct timespec past[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
  assert_int_equal(utimensat(AT_FDCWD, path, past, 0), 0);
  for (int i = 0; i < 40; i++)
    put(cache, i, PAGE / 2);
  assert_in_range(bytes_there(), 1, 4 * PAGE);
  assert_true(is_there("tune.db"));
  assert_true(is_there("ab/letter.txt"));
  assert_true(is_there("ab/.hidet-2-0"));
  assert_false(is_there("ab/.hidet-1-0"));
  hd_cache_close(cache);
}

static void entry_path(int number, char *path, size_t size) {
  char name[33];
  hd_cache_key_t key = key_of(number);
  snprintf(name, sizeof(name), "%016llx%016llx", (unsigned long long)key.high,
           (unsigned long long)key.low);
  snprintf(path, size, "%s/%.2s/%s", folder, name, name + 2);
}

static void assert_letter(const char *path) {
  char text[64] = "";
  int fd = open(path, O_RDONLY);
  assert_true(fd >= 0);
  assert_int_equal(read(fd, text, sizeof(text)), 11);
  close(fd);
  assert_string_equal(text, "dear reader");
}

// What symbolic links in the folder lead to is neither removed nor written: in
// place of folders of entries, of an entry, of the count.
static void test_links(void **state) {
  (void)state;
  enum { FOLDERS = 256, NUMBERS = 60 };
  char outside[128], letter[256], path[128];
  struct timespec past[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
  snprintf(outside, sizeof(outside), "%s/outside", folder);
  snprintf(letter, sizeof(letter), "%s/%030d", outside, 7);
  assert_int_equal(mkdir(outside, 0777), 0);
  write_file("outside/000000000000000000000000000007", "dear reader");
  assert_int_equal(utimensat(AT_FDCWD, letter, past, 0), 0);
  for (int i = 0; i < FOLDERS; i += 2) {
    snprintf(path, sizeof(path), "%s/%02x", folder, (unsigned)i);
    assert_int_equal(symlink("outside", path), 0);
  }
  hd_cache_t *cache = hd_cache_open(folder, 4 * PAGE);
  for (int i = 0; i < NUMBERS; i++)
    put(cache, i, PAGE / 2);
  assert_letter(letter);
  // The letter is one of a page; entries are in the other folders alone.
  assert_in_range(bytes_there(), 2 * PAGE, 5 * PAGE);
  int last = NUMBERS - 1;
  while (!get(cache, last))
    last--;
  entry_path(last, path, sizeof(path));
  assert_int_equal(unlink(path), 0);
  assert_int_equal(symlink("../outside/000000000000000000000000000007", path),
                   0);
  put(cache, last, PAGE / 2);
  assert_letter(letter);
  assert_int_equal(unlink(path), 0);
  snprintf(path, sizeof(path), "%s/size", folder);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(symlink("outside/000000000000000000000000000007", path), 0);
  put(cache, last, PAGE / 2);
  assert_letter(letter);
  hd_cache_close(cache);
}

// Whatever the file of the count says, or where it is gone.
static void test_damaged_count(void **state) {
  (void)state;
  static const char *const texts[] = {"", "no count",
                                      "0123456789abcdef01234567"};
  char path[128];
  hd_cache_t *cache = hd_cache_open(folder, 6 * PAGE);
  snprintf(path, sizeof(path), "%s/size", folder);
  for (int i = 0; i < 60; i++) {
    put(cache, i, PAGE / 2);
    assert_true(get(cache, i));
    assert_in_range(bytes_there(), 1, 6 * PAGE);
    if (i % 4 == 3)
      unlink(path);
    else
      write_file("size", texts[i % 4]);
  }
  hd_cache_close(cache);
}

static void work(int process) {
  hd_cache_t *cache = hd_cache_open(folder, 40 * PAGE);
  for (int i = 0; i < ENTRIES; i++) {
    int number = (process * 50 + i) % 400; // Some are of several processes.
    if (!get(cache, number))
      put(cache, number, PAGE / 2 + PAGE * (size_t)(number % 3));
  }
  hd_cache_close(cache);
}

static void test_processes(void **state) {
  (void)state;
  pid_t children[PROCESSES];
  for (int i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (!children[i]) {
      work(i);
      _exit(0);
    }
  }
  for (int i = 0; i < PROCESSES; i++) {
    int status;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
  assert_in_range(bytes_there(), 20 * PAGE, 40 * PAGE);
}

// Whoever has the lock and keeps it costs an entry, and no time.
static void test_locked(void **state) {
  (void)state;
  enum { HELD_S = 4 };
  char path[128], byte;
  int ready[2];
  hd_cache_t *cache = hd_cache_open(folder, 4 * PAGE);
  put(cache, 1, PAGE / 2);
  snprintf(path, sizeof(path), "%s/size", folder);
  assert_int_equal(pipe(ready), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    int fd = open(path, O_RDWR);
    if (flock(fd, LOCK_EX) == 0 && write(ready[1], "", 1) == 1)
      sleep(HELD_S);
    _exit(0);
  }
  assert_int_equal(read(ready[0], &byte, 1), 1);
  uint64_t start = hd_clock_ns();
  put(cache, 2, PAGE / 2);
  uint64_t ns = hd_clock_ns() - start;
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, NULL, 0), child);
  close(ready[0]);
  close(ready[1]);
  assert_true(ns < HELD_S * UINT64_C(1000000000) / 2);
  assert_true(get(cache, 1));
  assert_false(get(cache, 2));
  put(cache, 2, PAGE / 2);
  assert_true(get(cache, 2));
  hd_cache_close(cache);
}

static int forbid(const char *path, const struct stat *status, int type,
                  struct FTW *walk) {
  (void)status;
  return type == FTW_D && walk->level == 1 ? chmod(path, 0555) : 0;
}

static int allow(const char *path, const struct stat *status, int type,
                 struct FTW *walk) {
  (void)status, (void)walk;
  return chmod(path, type == FTW_D ? 0777 : 0666);
}

// Where entries cannot be removed, not every put looks for some that can be.
static void test_no_removal(void **state) {
  (void)state;
  char path[128];
  hd_cache_t *cache = hd_cache_open(folder, 4 * PAGE);
  for (int i = 0; i < 4; i++)
    put(cache, i, PAGE / 2);
  assert_int_equal(bytes_there(), 4 * PAGE);
  assert_int_equal(nftw(folder, allow, 8, FTW_PHYS), 0);
  assert_int_equal(nftw(folder, forbid, 8, FTW_PHYS), 0);
  uid_t user = geteuid();
  if (!user) // Who may do anything.
    assert_int_equal(seteuid(65534), 0);
  put(cache, 4, PAGE / 2);
  assert_int_equal(seteuid(user), 0);
  assert_int_equal(nftw(folder, allow, 8, FTW_PHYS), 0);
  assert_int_equal(bytes_there(), 4 * PAGE);
  put(cache, 4, PAGE / 2); // It would find some now.
  assert_false(get(cache, 4));
  snprintf(path, sizeof(path), "%s/size", folder);
  assert_int_equal(unlink(path), 0);
  put(cache, 4, PAGE / 2);
  assert_true(get(cache, 4));
  assert_in_range(bytes_there(), 1, 4 * PAGE);
  hd_cache_close(cache);
}

char *__wrap_strdup(const char *text) {
  return fails ? NULL : __real_strdup(text);
}

static void test_no_memory(void **state) {
  (void)state;
  fails = true;
  hd_cache_t *cache = hd_cache_open(folder, 0);
  fails = false;
  assert_null(cache);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_least_recent, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_too_large, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_others_stay, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_links, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_damaged_count, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_processes, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_locked, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_no_removal, set_up, tear_down),
      cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
