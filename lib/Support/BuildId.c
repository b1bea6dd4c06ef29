// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Support/BuildId.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct search {
  uintptr_t code; // An address in this object.
  const unsigned char *id;
  size_t size;
} search_t;

static bool holds(const struct dl_phdr_info *info, uintptr_t address) {
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_LOAD && address >= start &&
        address - start < part->p_memsz)
      return true;
  }
  return false;
}

// Notes: two sizes and a type, then name and content, each padded to 4 bytes.
static void read_notes(search_t *search, const unsigned char *at, size_t size) {
  ElfW(Nhdr) head;
  while (size >= sizeof(head)) {
    memcpy(&head, at, sizeof(head));
    size_t name = (head.n_namesz + 3u) & ~(size_t)3;
    size_t content = (head.n_descsz + 3u) & ~(size_t)3;
    if (name > size - sizeof(head) || content > size - sizeof(head) - name)
      return;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 &&
        memcmp(at + sizeof(head), "GNU", 4) == 0) {
      search->id = at + sizeof(head) + name;
      search->size = head.n_descsz;
    }
    at += sizeof(head) + name + content;
    size -= sizeof(head) + name + content;
  }
}

static int visit(struct dl_phdr_info *info, size_t size, void *argument) {
  (void)size;
  search_t *search = argument;
  if (!holds(info, search->code))
    return 0;
  for (int i = 0; i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_NOTE)
      read_notes(
          search,
          (const unsigned char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
          info->dlpi_phdr[i].p_memsz);
  return 1;
}

const char *hd_build_id(char *text, size_t size) {
  search_t search = {.code = (uintptr_t)&hd_build_id};
  dl_iterate_phdr(visit, &search);
  if (!search.size || search.size * 2 + 1 > size)
    return NULL;
  for (size_t i = 0; i < search.size; i++)
    snprintf(text + 2 * i, 3, "%02x", search.id[i]);
  return text;
}
