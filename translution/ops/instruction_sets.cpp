#include "translution/ops/instruction_sets.h"

#include "translution/kernels/onednn.h"
#include "translution/ops/onednn_limit.h"

namespace translution {

InstructionSets instruction_sets() {
  return {available_isas(), chosen_isa(), kernels::onednn_isa(), amx_support(read_tile_info()),
          users_onednn_limit()};
}

}  // namespace translution
