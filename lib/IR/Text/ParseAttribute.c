// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Graphs: elements of constants, attributes.
#include "IR/Graph/Loop.h"
#include "IR/Text/GraphParser.h"

#include <math.h>
#include <string.h>

// Bytes of constants in a graph that are written as one element.
enum { MAX_REPEATED = 1 << 28 };

// A number as it is written.
typedef struct number {
  hd_loc_t loc;
  bool is_float, is_bool, negative;
  uint64_t value; // Without its sign.
  double real;    // With it.
} number_t;

static bool at_number(const hd_parser_t *p) {
  hd_token_kind_t kind = hd_peek(p)->kind;
  return kind == HD_TOKEN_INT || kind == HD_TOKEN_FLOAT || hd_at(p, "-") ||
         hd_at(p, "inf") || hd_at(p, "nan");
}

static bool at_bool(const hd_parser_t *p) {
  return hd_at(p, "true") || hd_at(p, "false");
}

static bool parse_number(hd_parser_t *p, number_t *number) {
  *number = (number_t){.loc = hd_here(p)};
  if (hd_accept(p, "true") || hd_accept(p, "false")) {
    number->is_bool = true;
    number->value = p->tokens[p->at - 1].text[0] == 't';
    return true;
  }
  number->negative = hd_accept(p, "-");
  const hd_token_t *token = hd_peek(p);
  if (token->kind == HD_TOKEN_INT) {
    number->value = token->value;
    number->real = (double)token->value;
  } else if (token->kind == HD_TOKEN_FLOAT) {
    number->real = token->number;
  } else if (hd_at(p, "inf") || hd_at(p, "nan")) {
    number->real = hd_at(p, "inf") ? HUGE_VAL : (double)NAN;
  } else {
    return hd_expected(p, "a number");
  }
  number->is_float = token->kind != HD_TOKEN_INT;
  if (number->negative)
    number->real = -number->real;
  p->at++;
  return true;
}

static const char *number_text(hd_parser_t *p, const number_t *number) {
  return hd_arena_printf(p->arena, "%s%llu", number->negative ? "-" : "",
                         (unsigned long long)number->value);
}

static bool as_int(hd_parser_t *p, const number_t *number, hd_scalar_t type,
                   int64_t *value) {
  uint64_t limit = (UINT64_C(1) << 63) - !number->negative;
  *value = (int64_t)(number->negative ? 0 - number->value : number->value);
  bool fits = type == HD_U64 ? !number->negative || !number->value
                             : number->value <= limit &&
                                   hd_int_fits(hd_type(type), *value);
  return fits || hd_error(p->diags, number->loc, HD_E0214,
                          number_text(p, number), hd_scalar_name(type));
}

static bool set_element(hd_parser_t *p, hd_host_tensor_t *tensor, int64_t i,
                        const number_t *number) {
  hd_type_t type = hd_type(tensor->type);
  bool fits = number->is_bool    ? hd_type_is_bool(type)
              : number->is_float ? hd_type_is_float(type)
                                 : !hd_type_is_bool(type);
  if (!fits)
    return hd_error(p->diags, number->loc, HD_E0203, hd_type_name(type),
                    number->is_bool    ? "a bool"
                    : number->is_float ? "a float"
                                       : "an integer");
  int64_t value = (int64_t)number->value;
  if (hd_type_is_float(type))
    hd_host_tensor_set(tensor, i, number->real);
  else if (number->is_bool || as_int(p, number, tensor->type, &value))
    hd_host_tensor_set_int(tensor, i, value);
  else
    return false;
  return true;
}

static bool repeat_element(hd_parser_t *p, hd_host_tensor_t *tensor) {
  number_t number;
  if (!parse_number(p, &number))
    return false;
  if (tensor->count == 0)
    return true;
  if (!set_element(p, tensor, 0, &number))
    return false;
  size_t size = hd_host_element_bytes(tensor->type);
  for (size_t filled = size; filled < tensor->bytes;) {
    size_t more = tensor->bytes - filled;
    more = more < filled ? more : filled;
    memcpy(tensor->data + filled, tensor->data, more);
    filled += more;
  }
  return true;
}

static bool wrong_count(hd_parser_t *p, const hd_value_t *value, int64_t wanted,
                        int64_t found) {
  return hd_error(p->diags, value->loc, HD_E0206,
                  hd_arena_printf(p->arena, "'%s'", value->name), (int)wanted,
                  "elements", (int)found);
}

static bool parse_list(hd_parser_t *p, hd_host_tensor_t *tensor,
                       const hd_value_t *value) {
  int64_t count = 0;
  for (; !hd_at(p, "]"); count++) {
    number_t number;
    if (!parse_number(p, &number) ||
        (count < tensor->count && !set_element(p, tensor, count, &number)))
      return false;
    if (!hd_accept(p, ",")) {
      count++;
      break;
    }
  }
  if (!hd_expect(p, "]"))
    return false;
  return count == tensor->count || wrong_count(p, value, tensor->count, count);
}

static bool parse_file(hd_parser_t *p, hd_constant_t *constant) {
  if (!hd_expect(p, "("))
    return false;
  if (hd_peek(p)->kind != HD_TOKEN_STRING)
    return hd_expected(p, "the name of a file");
  constant->file = hd_peek(p)->text;
  p->at++;
  number_t offset;
  return hd_expect(p, ",") && parse_number(p, &offset) &&
         as_int(p, &offset, HD_I64, &constant->offset) && hd_expect(p, ")");
}

// A short text makes no large tensor: a list is as long as it is written, and
// what one element is repeated for is bounded.
static bool check_room(hd_graph_parser_t *g, const hd_value_t *value,
                       int64_t count) {
  hd_parser_t *p = g->p;
  if (!hd_at(p, "[")) {
    int64_t room = MAX_REPEATED - g->repeated;
    int64_t size = hd_host_element_bytes(value->type);
    if (count > room / size)
      return hd_error(p->diags, value->loc, HD_E0904,
                      hd_arena_printf(p->arena,
                                      "constants that repeat an element hold "
                                      "more than %d MiB; keep '%s' in a file",
                                      MAX_REPEATED >> 20, value->name));
    g->repeated += count * size;
    return true;
  }
  int64_t tokens = 0, commas = 0;
  for (size_t i = p->at + 1;
       p->tokens[i].kind != HD_TOKEN_END && strcmp(p->tokens[i].text, "]") != 0;
       i++, tokens++)
    commas += p->tokens[i].text[0] == ',';
  return tokens >= count || wrong_count(p, value, count, tokens - commas);
}

bool hd_parse_elements(hd_graph_parser_t *g, hd_value_t *value) {
  hd_parser_t *p = g->p;
  hd_constant_t *constant = HD_ARENA_NEW(p->arena, hd_constant_t);
  value->constant = constant;
  if (hd_accept(p, "file"))
    return parse_file(p, constant);
  if (!hd_value_is_concrete(value) || value->rank > HD_TENSOR_MAX_RANK)
    return hd_error(p->diags, value->loc, HD_E0210,
                    " type and shape of what has its elements here");
  int64_t shape[HD_TENSOR_MAX_RANK];
  for (int i = 0; i < value->rank; i++)
    if ((shape[i] = value->shape[i]->u.i) < 0)
      return hd_error(p->diags, value->loc, HD_E0307, "a size", 0LL,
                      (long long)INT64_MAX, (long long)shape[i]);
  int64_t count, bytes;
  if (!hd_packed_size(value->type, shape, (unsigned)value->rank, &count,
                      &bytes))
    return hd_error(p->diags, value->loc, HD_E0309, value->name);
  if (!check_room(g, value, count))
    return false;
  hd_host_tensor_t *tensor =
      hd_host_tensor_make(p->arena, value->type, shape, (unsigned)value->rank);
  if (!tensor)
    return hd_error(p->diags, value->loc, HD_E0309, value->name);
  constant->tensor = tensor;
  return hd_accept(p, "[") ? parse_list(p, tensor, value)
                           : repeat_element(p, tensor);
}

static bool next_string(hd_parser_t *p, const char **text) {
  if (hd_peek(p)->kind != HD_TOKEN_STRING)
    return hd_expected(p, "a string");
  *text = hd_peek(p)->text;
  p->at++;
  return true;
}

static bool parse_strings(hd_parser_t *p, hd_attribute_t *a) {
  HD_VEC(const char *) strings = {0};
  do {
    const char *text;
    if (!next_string(p, &text))
      return false;
    hd_vec_push(p->arena, &strings, text);
  } while (hd_accept(p, ","));
  a->kind = HD_ATTRIBUTE_STRINGS;
  a->u.strings = strings.data;
  a->count = strings.size;
  return hd_expect(p, "]");
}

// What the values of an attribute are read as.
typedef struct reading {
  hd_scalar_t floats;
  bool takes_bools;
} reading_t;

static bool parse_numbers(hd_parser_t *p, hd_attribute_t *a, reading_t as) {
  HD_VEC(int64_t) ints = {0};
  HD_VEC(double) floats = {0};
  do {
    number_t number;
    int64_t value;
    if (!parse_number(p, &number))
      return false;
    bool first = ints.size + floats.size == 0;
    if ((number.is_bool && !as.takes_bools) ||
        (!first && number.is_float != (floats.size > 0))) {
      p->at--;
      return hd_expected(p, floats.size ? "a float" : "an integer");
    }
    if (number.is_float)
      hd_vec_push(p->arena, &floats, hd_float_round(as.floats, number.real));
    else if (as_int(p, &number, HD_I64, &value))
      hd_vec_push(p->arena, &ints, value);
    else
      return false;
  } while (hd_accept(p, ","));
  a->kind = floats.size ? HD_ATTRIBUTE_FLOATS : HD_ATTRIBUTE_INTS;
  a->count = floats.size ? floats.size : ints.size;
  if (floats.size)
    a->u.floats = floats.data;
  else
    a->u.ints = ints.data;
  return hd_expect(p, "]");
}

static bool parse_attribute_list(hd_parser_t *p, hd_attribute_t *a,
                                 reading_t as) {
  a->kind = HD_ATTRIBUTE_INTS;
  if (hd_accept(p, "]"))
    return true;
  if (hd_at_size(p, true))
    return hd_parse_sizes(p, a, true);
  return hd_peek(p)->kind == HD_TOKEN_STRING ? parse_strings(p, a)
                                             : parse_numbers(p, a, as);
}

static bool parse_subgraph(hd_graph_parser_t *g, const hd_node_t *node,
                           hd_attribute_t *a) {
  hd_graph_t *graph = HD_ARENA_NEW(g->p->arena, hd_graph_t);
  bool alone = hd_node_is_loop(node);
  a->kind = HD_ATTRIBUTE_GRAPH;
  a->u.graph = graph;
  graph->loc = a->loc;
  graph->outer = alone ? NULL : g->graph;
  if (!hd_enter(g->p))
    return false;
  bool ok =
      alone ? hd_parse_graph_alone(g, graph) : hd_parse_graph_rest(g, graph);
  g->p->depth--;
  return ok;
}

// A type, or a tensor where a shape follows it.
static bool parse_type_attribute(hd_graph_parser_t *g, hd_attribute_t *a) {
  hd_parser_t *p = g->p;
  hd_type_t type;
  const hd_token_t *token = hd_peek(p);
  if (token->kind != HD_TOKEN_NAME || !hd_type_parse(token->text, &type))
    return hd_expected(p, "the value of an attribute");
  if (strcmp(hd_peek_ahead(p, 1)->text, "[") != 0) {
    a->kind = HD_ATTRIBUTE_TYPE;
    return hd_parse_element_type(g, &a->u.type);
  }
  hd_value_t *value = HD_ARENA_NEW(p->arena, hd_value_t);
  value->name = a->name;
  value->loc = a->loc;
  a->kind = HD_ATTRIBUTE_TENSOR;
  a->u.tensor = value;
  return hd_parse_value_type(g, value, false) && hd_parse_elements(g, value);
}

static bool parse_attribute_value(hd_graph_parser_t *g, const hd_node_t *node,
                                  hd_attribute_t *a) {
  reading_t as = {hd_node_float_type(node), hd_node_has_bool(node, a->name)};
  hd_parser_t *p = g->p;
  number_t number;
  if (!hd_at(p, "[") && !hd_at(p, "graph") && hd_at_size(p, false))
    return hd_parse_sizes(p, a, false);
  if (at_number(p) || (as.takes_bools && at_bool(p))) {
    if (!parse_number(p, &number))
      return false;
    a->kind = number.is_float ? HD_ATTRIBUTE_FLOAT : HD_ATTRIBUTE_INT;
    if (!number.is_float)
      return as_int(p, &number, HD_I64, &a->u.i);
    a->u.f = hd_float_round(as.floats, number.real);
    return true;
  }
  if (hd_peek(p)->kind == HD_TOKEN_STRING) {
    a->kind = HD_ATTRIBUTE_STRING;
    return next_string(p, &a->u.s);
  }
  if (hd_accept(p, "["))
    return parse_attribute_list(p, a, as);
  bool floats = hd_accept(p, "floats");
  if (floats || hd_accept(p, "strings")) {
    a->kind = floats ? HD_ATTRIBUTE_FLOATS : HD_ATTRIBUTE_STRINGS;
    return hd_expect(p, "[") && hd_expect(p, "]");
  }
  return hd_accept(p, "graph") ? parse_subgraph(g, node, a)
                               : parse_type_attribute(g, a);
}

bool hd_parse_attributes(hd_graph_parser_t *g, hd_node_t *node) {
  hd_parser_t *p = g->p;
  HD_VEC(const hd_attribute_t *) list = {0};
  do {
    hd_attribute_t *a = HD_ARENA_NEW(p->arena, hd_attribute_t);
    const hd_token_t *token = hd_peek(p);
    if (token->kind != HD_TOKEN_NAME) // Those of a standard may be any word.
      return hd_expected(p, "the name of an attribute");
    a->name = token->text;
    a->loc = hd_here(p);
    p->at++;
    if (!hd_expect(p, "=") || !parse_attribute_value(g, node, a))
      return false;
    hd_vec_push(p->arena, &list, (const hd_attribute_t *)a);
  } while (hd_accept(p, ","));
  node->attributes = list.data;
  node->num_attributes = (uint32_t)list.size;
  return hd_expect(p, "}");
}
