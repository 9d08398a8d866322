// Several pieces as one shader: each workgroup belongs to one of them.
#pragma once

#include <span>
#include <string>

#include "codegen/wgsl/source.h"

namespace tensorgrad::wgsl {

// Why the pieces cannot be one shader on the target; empty: they can. They agree on memory and
// invocations.
std::string why_not(std::span<const Piece> pieces, const Target& target);

// One shader of at least one piece. With several, the functions of each have names of their own,
// and workgroup memory is shared: no workgroup runs two of them.
Shader link(std::span<const Piece> pieces, const Target& target);

}  // namespace tensorgrad::wgsl
