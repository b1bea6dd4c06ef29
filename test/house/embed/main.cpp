// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The headers in C++, and what a C++ program does with them: owners that end
// things, a watcher that is a method.
#include <hidet/Launch.h>
#include <hidet/Session.h>
#include <hidet/Tools.h>
#include <hidet/Version.h>

#include <cstring>
#include <iostream>
#include <memory>
#include <string>

namespace {

struct End {
  void operator()(hidet_context_t *c) const { hidet_context_destroy(c); }
  void operator()(hidet_device_t *d) const { hidet_device_close(d); }
  void operator()(hidet_module_t *m) const { hidet_module_destroy(m); }
  void operator()(hidet_model_t *m) const { hidet_model_destroy(m); }
  void operator()(hidet_session_t *s) const { hidet_session_destroy(s); }
};
template <typename T> using Owned = std::unique_ptr<T, End>;

class Log {
public:
  static void take(void *self, const hidet_event_t *event) {
    if (event->kind == HIDET_EVENT_MESSAGE)
      static_cast<Log *>(self)->text += event->text;
  }
  std::string text;
};

const char text[] = "graph main(x: f32[4]) -> y {\n"
                    "  y: f32[4] = relu(x)\n"
                    "}\n";

bool run(Log &log) {
  Owned<hidet_context_t> context(hidet_context_create());
  hidet_context_watch(context.get(), Log::take, &log);
  hidet_device_t *device = nullptr;
  hidet_module_t *module = nullptr, *wrong = nullptr;
  hidet_model_t *model = nullptr;
  hidet_session_t *session = nullptr;
  if (hidet_device_open(context.get(), "sim", &device) != HIDET_OK)
    return false;
  Owned<hidet_device_t> own_device(device);
  if (hidet_module_parse(context.get(), "bad", "graph", 5, &wrong) !=
          HIDET_INVALID ||
      hidet_module_parse(context.get(), "m", text, std::strlen(text),
                         &module) != HIDET_OK)
    return false;
  Owned<hidet_module_t> own_module(module);
  if (hidet_model_create(module, "main", &model) != HIDET_OK)
    return false;
  Owned<hidet_model_t> own_model(model);
  if (hidet_session_create(model, device, &session) != HIDET_OK)
    return false;
  Owned<hidet_session_t> own_session(session);
  const float x[4] = {-1, 0, 2, -3};
  hidet_array_t in = {"f32", 1, {4}, x}, out = {};
  if (hidet_session_run(session, &in, 1, &out, 1) != HIDET_OK)
    return false;
  const float *y = static_cast<const float *>(out.data);
  return y[0] == 0 && y[1] == 0 && y[2] == 2 && y[3] == 0;
}

} // namespace

int main() {
  Log log;
  if (!run(log) || log.text.find("error[") == std::string::npos) {
    std::cerr << hidet_messages() << log.text;
    return 1;
  }
  return 0;
}
