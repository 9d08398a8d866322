// The one adapter of a page: that of the device which the page opened.
#include "runtime/webgpu/adapters.h"
#include "runtime/webgpu/browser.h"

namespace tensorgrad::webgpu {

std::vector<FoundAdapter> find_adapters(const Library& library) {
  std::vector<FoundAdapter> found;
  if (webgpu_available() == 0) return found;
  Handle<api::AdapterImpl> only(reinterpret_cast<api::Adapter>(1), library.call.AdapterRelease);
  AdapterInfo info = describe(library, only.get());
  found.push_back({std::move(only), std::move(info)});
  return found;
}

api::Instance instance(const Library&) { return reinterpret_cast<api::Instance>(1); }

std::string why_no_adapter() { return page_text("message"); }

}  // namespace tensorgrad::webgpu
