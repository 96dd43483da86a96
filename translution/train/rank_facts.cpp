#include "translution/train/rank_facts.h"

#include "translution/core/error.h"
#include "translution/io/checksum.h"

namespace translution {

using namespace detail;

namespace {

void add_bytes(Checksum& checksum, const torch::Tensor& tensor) {
  const auto bytes = tensor.detach().to(torch::kCPU).contiguous();
  checksum.add({static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()});
}

// Tells data sets of the same size apart, without reading them as a whole.
std::string samples_checksum(const Dataset& dataset) {
  BatchPlan plan;
  plan.samples = {0, dataset.size() / 2, dataset.size() - 1};
  const auto batch = dataset.load(plan);
  Checksum checksum;
  for (const auto& part : {batch.input, batch.target, batch.positions, batch.mask})
    if (part.defined()) add_bytes(checksum, part);
  return checksum.hex();
}

// Of parameters that all ranks have as a whole.
std::string weights_checksum(Network& network) {
  const auto split = network.table_rows();
  Checksum checksum;
  for (const auto& item : network.module().named_parameters())
    if (split.count(item.key()) == 0) add_bytes(checksum, item.value());
  return checksum.hex();
}

}  // namespace

SettingTexts rank_facts(const TrainOptions& options, const DataSource& data, Network& network,
                        int64_t steps_done) {
  auto facts = texts_of(train_settings(), options, WhichSettings::learned);
  const auto add = [&](const std::string& name, const auto& value) {
    facts.emplace_back(name, join(value));
  };
  add("eval-every", options.eval_every);
  add("save-every", options.save_every);
  add("log-every", options.log_every);
  add("samples of training", data.train->size());
  add("checksum of the first, middle and last sample", samples_checksum(*data.train));
  for (const auto& set : data.evaluation)
    add("checksum of samples in " + set.name,
        join(samples_checksum(*set.dataset), " of ", set.dataset->size()));
  for (size_t c = 0; c < data.classes.size(); ++c) add(join("class ", c), data.classes[c]);
  add("step of the checkpoint", steps_done);
  add("checksum of the weights", weights_checksum(network));
  return facts;
}

}  // namespace translution
