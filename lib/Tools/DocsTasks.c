// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The tasks of the operator library as tables of Markdown: a chapter for each
// file, with the comment that it opens with; a line for each task, with the
// comment above it. Operands, attributes and results are those of the parsed
// task.
#include "IR/Text/Library.h"
#include "IR/Text/TaskPrinter.h"
#include "Support/Embedded.h"
#include "Tools/Docs.h"

#include <string.h>

static const char folder[] = "Graph/operators/";

// A line of a text that goes on to its end.
typedef struct line {
  const char *text;
  size_t size;
  const char *next; // NULL: it is the last.
} line_t;

static line_t line_at(const char *text) {
  const char *end = strchr(text, '\n');
  return (line_t){text, end ? (size_t)(end - text) : strlen(text),
                  end && end[1] ? end + 1 : NULL};
}

static bool is_comment(const line_t *line) {
  return line->size >= 2 && strncmp(line->text, "//", 2) == 0;
}

// The words of a comment's line behind those of the lines before; the licence
// is none.
static void add_comment(hd_buffer_t *words, const line_t *line) {
  static const char mark[] = "// ", licence[] = "// SPDX-";
  size_t skip = strlen(mark);
  if (line->size <= skip || strncmp(line->text, licence, strlen(licence)) == 0)
    return;
  hd_buffer_puts(words, words->size ? " " : "");
  hd_buffer_write(words, line->text + skip, line->size - skip);
}

static void put_values(hd_buffer_t *out, const hd_task_t *task,
                       hd_value_kind_t kind) {
  size_t count =
      kind == HD_VALUE_OUTPUT ? task->outputs.size : task->inputs.size;
  const char *before = "";
  for (size_t i = 0; i < count; i++) {
    const hd_task_value_t *value =
        kind == HD_VALUE_OUTPUT ? task->outputs.data[i] : task->inputs.data[i];
    hd_buffer_t text = {0};
    if (value->kind != kind)
      continue;
    hd_buffer_printf(&text, "%s: ", value->name);
    hd_print_task_type(&text, task, value);
    hd_buffer_puts(out, before);
    hd_docs_code_cell(out, hd_buffer_text(&text));
    hd_buffer_fini(&text);
    before = ", ";
  }
  hd_buffer_puts(out, " | ");
}

// What stands between two words of a task's text, without their spaces.
static void put_written(hd_buffer_t *out, const char *text, const char *from,
                        const char *to) {
  const char *start = strstr(text, from) + strlen(from);
  hd_buffer_t words = {0};
  hd_buffer_write(&words, start, (size_t)(strstr(start, to) - start));
  hd_docs_code_cell(out, hd_buffer_text(&words));
  hd_buffer_fini(&words);
}

// A list of operands stands in the text alone: the task is one for each number.
static void put_signature(hd_buffer_t *out, const hd_task_t *task) {
  if (!task->text) {
    put_values(out, task, HD_VALUE_INPUT);
    put_values(out, task, HD_VALUE_ATTRIBUTE);
    put_values(out, task, HD_VALUE_OUTPUT);
    return;
  }
  put_written(out, task->text->text, "(", ") ->");
  hd_buffer_puts(out, " |  | ");
  put_written(out, task->text->text, "-> ", " where");
  hd_buffer_puts(out, " | ");
}

static void put_task(hd_buffer_t *out, const hd_task_t *task,
                     const hd_buffer_t *words) {
  hd_buffer_t where = {0};
  hd_buffer_printf(out, "| `%s` | ", task->name);
  put_signature(out, task);
  if (hd_print_task_where(&where, task, ""))
    hd_docs_code_cell(out, hd_buffer_text(&where));
  hd_buffer_fini(&where);
  hd_buffer_puts(out, " | ");
  hd_docs_cell(out, hd_buffer_text(words));
  hd_buffer_puts(out, " |\n");
}

// The name on a line that a task begins with; "" of any other.
static void task_name(const line_t *line, char *name, size_t size) {
  static const char word[] = "task ";
  name[0] = '\0';
  if (line->size <= strlen(word) ||
      strncmp(line->text, word, strlen(word)) != 0)
    return;
  const char *start = line->text + strlen(word);
  size_t length = strcspn(start, "( \n");
  if (length < size) {
    memcpy(name, start, length);
    name[length] = '\0';
  }
}

static void put_file(hd_context_t *context, const hd_embedded_t *file,
                     hd_buffer_t *out) {
  const char *base = file->name + strlen(folder);
  char name[80];
  bool opened = false;
  hd_buffer_t words = {0};
  hd_buffer_printf(out, "\n## %.*s\n\n", (int)strcspn(base, "."), base);
  for (line_t line = line_at(file->text);; line = line_at(line.next)) {
    task_name(&line, name, sizeof name);
    const hd_task_t *task = name[0] ? hd_library_task(context, name) : NULL;
    if (is_comment(&line))
      add_comment(&words, &line);
    if (task)
      put_task(out, task, &words);
    if (!is_comment(&line) && !opened) {
      hd_buffer_printf(out,
                       "%s\n\n| task | operands | attributes | results | where "
                       "| |\n|---|---|---|---|---|---|\n",
                       hd_buffer_text(&words));
      opened = true;
    }
    if (!is_comment(&line))
      hd_buffer_fini(&words);
    if (!line.next)
      break;
  }
  hd_buffer_fini(&words);
}

void hd_docs_tasks(hd_context_t *context, hd_buffer_t *out) {
  hd_buffer_printf(out, "# Tasks\n\n%s", hd_docs_notice);
  hd_buffer_puts(
      out,
      "The tasks of the library, `lib/Graph/operators/*.hir`, where stands "
      "what they compute; [IR.md](IR.md), \"Tasks\", says how to read it. A "
      "node of a graph calls one: `y = softmax(x) { s = 1 }`. `T` and other "
      "capitals are types, of operands or as attributes of the node, `..s` "
      "are axes, which lie as an attribute says where `by` names one.\n");
  for (size_t i = 0; i < hd_embedded_count; i++)
    if (strncmp(hd_embedded_files[i].name, folder, strlen(folder)) == 0)
      put_file(context, &hd_embedded_files[i], out);
}
