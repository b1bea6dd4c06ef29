// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rewrites of graphs as data (docs/IR.md, "Rewrites"): some nodes, and what
// takes their place. Everything is immutable once made and lives in the
// module's arena.
#ifndef HIDET_IR_GRAPH_REWRITERULE_H
#define HIDET_IR_GRAPH_REWRITERULE_H

#include "IR/Graph/Task.h"

typedef struct hd_rule_node hd_rule_node_t;

// A name of a rewrite: an operand, or what a node gives.
typedef struct hd_rule_value {
  const char *name;
  hd_loc_t loc;
  uint32_t index; // In hd_rewrite_t.values.
  bool operand;
  uint32_t list; // Of operands, that it is one of, from 1 on; 0: of none.
  bool constant; // Of an operand: it depends on constants alone.
  // An operand's, or as written behind a result: of what the left side gives an
  // input of the signature, of what the right side gives an output; else NULL.
  const hd_task_value_t *type;
  const hd_rule_node_t *left, *right; // That give it; NULL: none does.
} hd_rule_value_t;

typedef enum hd_rule_attribute_kind {
  HD_RULE_TERM, // One value, or one for each axis of a pack.
  HD_RULE_LIST, // Terms, those over packs one after the other.
  HD_RULE_TYPE,
  HD_RULE_RANK, // How many axes a pack has.
} hd_rule_attribute_kind_t;

// Of a node on the left the attribute binds where it is no more than the name
// of an attribute, a type variable or a pack of the signature; else it is what
// the node's attribute has to be. So do names that stand alone in a list,
// before anything that is over a pack.
typedef struct hd_rule_attribute {
  const char *name;
  hd_loc_t loc;
  hd_rule_attribute_kind_t kind;
  const hd_term_t *term; // TERM
  uint32_t count;        // LIST
  const hd_term_t *const *terms;
  hd_task_type_t type;   // TYPE
  bool narrow;           // TYPE: narrow(type), see hd_precision_operand().
  const hd_pack_t *pack; // RANK
} hd_rule_attribute_t;

struct hd_rule_node {
  const char *op;        // NULL: the value of its one input.
  const hd_task_t *task; // NULL: reshape, magnitudes, or no operator.
  hd_loc_t loc;
  // On the right: it gives nothing, and the rule is used where the one bool of
  // its task is true, of constants that are known then.
  bool required;
  uint32_t num_inputs;
  const hd_rule_value_t *const *inputs;
  uint32_t num_outputs; // An entry is NULL where nobody asks for it.
  const hd_rule_value_t *const *outputs;
  uint32_t num_attributes;
  const hd_rule_attribute_t *const *attributes;
};

typedef HD_VEC(const hd_rule_node_t *) hd_rule_nodes_t;

// What a rewrite may change of results.
typedef enum hd_freedom {
#define HD_FREEDOM(name, text) HD_FREEDOM_##name,
#include "IR/Graph/Freedoms.def"
#undef HD_FREEDOM
  HD_FREEDOM_COUNT
} hd_freedom_t;

// Lists of operands in a rewrite.
enum { HD_MAX_LISTS = 8 };

// A rewrite with lists of operands: its text, and what was read of it for
// numbers of operands (hd_rewrite_for(), IR/Text/Parser.h).
typedef struct hd_rewrite_text {
  hd_module_t *module;           // Which all of them belong to.
  const char *text;              // From its first word to its last brace.
  uint32_t source;               // Where the tokens come from.
  const struct hd_token *tokens; // The first is behind the name.
  uint32_t num_lists;
  HD_VEC(hd_rewrite_t *) rewrites; // The first, of one each, is the item.
} hd_rewrite_text_t;

struct hd_rewrite {
  const char *name;
  const char *family; // What its text is called; of alternatives all are one.
  hd_loc_t loc;
  hd_rewrite_text_t *text;       // That it is read from; NULL: it has no list.
  uint32_t counts[HD_MAX_LISTS]; // Of the operands of each list.
  // What stands for types, sizes, packs and attributes. Its inputs are the
  // operands, the attributes, and what the left side gives with a type; its
  // outputs what the right side gives with one.
  const hd_task_t *signature;
  HD_VEC(hd_rule_value_t *) values; // Operands first.
  hd_rule_nodes_t left, right;
  // Results that no chain of nodes, element by element, leads together; NULL
  // both: nothing is said.
  const hd_rule_value_t *apart[2];
  uint32_t
      freedoms; // A bit for each hd_freedom_t; none: results stay the same.
};

// Whether a rewrite, or its family, is called so.
bool hd_rewrite_is_called(const hd_rewrite_t *rewrite, const char *name);
const char *hd_freedom_name(hd_freedom_t freedom); // "rounding"
// Names of what a rule may change between `before` and `after`; nothing where
// there is none.
void hd_freedoms_print(const struct hd_rewrite *rewrite, const char *before,
                       const char *after, hd_buffer_t *out);

// The value of the left side or the operand that an input of the signature is
// the type of; NULL of an attribute.
const hd_rule_value_t *hd_rewrite_typed(const hd_rewrite_t *rewrite,
                                        const hd_task_value_t *type);
// What a term of the name alone stands for: such an attribute binds.
bool hd_rule_attribute_binds(const hd_rule_attribute_t *attribute);
// How many numbers a list begins with; whether one of them binds.
uint32_t hd_rule_leading(const hd_rule_attribute_t *list);
bool hd_rule_item_binds(const hd_term_t *item);
bool hd_rule_node_gives(const hd_rule_node_t *node, const char *attribute);
bool hd_rule_node_reads(const hd_rule_node_t *node,
                        const hd_rule_value_t *value);
bool hd_rule_node_is_reshape(const hd_rule_node_t *node);
// For what is required alone: of a constant the largest magnitudes, along the
// axes where the type written has 1.
bool hd_rule_node_is_magnitudes(const hd_rule_node_t *node);

// The rules of docs/IR.md; reports every fault.
bool hd_rewrite_verify(hd_context_t *context, const hd_rewrite_t *rewrite);
void hd_rewrite_print(const hd_rewrite_t *rewrite, hd_buffer_t *out);

#endif
