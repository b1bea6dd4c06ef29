// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the parts of the parser of graphs share (ParseGraph.c: signatures and
// nodes, ParseSizes.c: types, ParseAttribute.c: constants, attributes).
#ifndef HIDET_IR_TEXT_GRAPHPARSER_H
#define HIDET_IR_TEXT_GRAPHPARSER_H

#include "IR/Graph/Graph.h"
#include "IR/Text/ParserState.h"
#include "Support/Map.h"

typedef struct hd_graph_entry hd_graph_entry_t;

typedef struct hd_unresolved {
  const char *name;
  hd_loc_t loc;
} hd_unresolved_t;

typedef struct hd_graph_parser {
  hd_parser_t *p;
  hd_graph_t *graph; // The one being read.
  // All its values, and those around it, by name and in their order.
  hd_key_map_t names;
  HD_VEC(hd_graph_entry_t *) entries;
  uint32_t group;   // Of what is being read; 0: none.
  uint32_t groups;  // Of the graph, so far.
  int64_t repeated; // Bytes of constants that are written as one element.
  HD_VEC(hd_unresolved_t) unresolved; // Uses of what was not given before.
} hd_graph_parser_t;

// A graph from its parenthesis on; its name and what is around it are set.
bool hd_parse_graph_rest(hd_graph_parser_t *g, hd_graph_t *graph);
// The same of one that sees nothing of what is around it.
bool hd_parse_graph_alone(hd_graph_parser_t *g, hd_graph_t *graph);

// A use of a value by its name; of what nobody has given, which is reported
// when the graph ends, one without a type.
const hd_value_t *hd_graph_use_value(hd_graph_parser_t *g, const char *name,
                                     hd_loc_t loc);
// [as "label"]
bool hd_parse_label(hd_parser_t *p, const char **label);

// --- ParseNode.c ---

// [anchor], in a group.
bool hd_parse_anchor(hd_graph_parser_t *g, hd_node_t *node);
// From the operator on, behind the results.
bool hd_parse_node(hd_graph_parser_t *g, hd_node_t *node);

// --- ParseSizes.c ---

// The type of a value, after ':'. binds: names that nobody knows are
// dimensions, declared here.
bool hd_parse_value_type(hd_graph_parser_t *g, hd_value_t *value, bool binds);
// That of an element of it.
bool hd_parse_element_type(hd_graph_parser_t *g, hd_scalar_t *scalar);
// Whether a dimension of the graph is named before the end of what begins here:
// an element, or the list that it stands in.
bool hd_at_size(const hd_parser_t *p, bool in_list);
// One size, or a list of them and the ']', as the value of an attribute.
bool hd_parse_sizes(hd_parser_t *p, hd_attribute_t *a, bool is_list);

// --- ParseAttribute.c ---

// The elements of a constant whose type is known, after '='.
bool hd_parse_elements(hd_graph_parser_t *g, hd_value_t *value);
// name = value, ... up to the '}'.
bool hd_parse_attributes(hd_graph_parser_t *g, hd_node_t *node);

// --- ParsePin.c ---

// The values of `with NAME(values)`, from the parenthesis on; what they mean is
// looked at when the node is scheduled. NULL after an error.
const hd_pin_t *hd_parse_pin(hd_parser_t *p, const char *name, hd_loc_t loc);

// --- NodeTypes.c ---

// Gives a task's node the attributes that the types written of its results say.
void hd_settle_node_types(hd_arena_t *arena, hd_node_t *node);

#endif
