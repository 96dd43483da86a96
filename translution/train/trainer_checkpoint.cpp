#include <algorithm>

#include "translution/core/error.h"
#include "translution/core/message.h"
#include "translution/data/class_names.h"
#include "translution/train/trainer.h"

namespace translution {

using namespace detail;

namespace {

void copy_into(torch::Tensor& to, const NamedTensors& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  ensure(found != tensors.end() && found->second.sizes() == to.sizes() &&
             found->second.scalar_type() == to.scalar_type(),
         "resume: the checkpoint has no tensor ", name, " of this model's shape");
  torch::NoGradGuard no_grad;
  to.copy_(found->second);
}

// Length, optimizer and loss: stored in every checkpoint, to report changes on resume.
SettingTexts training_texts(const TrainOptions& options) {
  return texts_of(train_settings(), options, WhichSettings::learned);
}

nlohmann::json object_of(const SettingTexts& texts) {
  auto object = nlohmann::json::object();
  for (const auto& [name, text] : texts) object[name] = text;
  return object;
}

}  // namespace

void Trainer::resume() {
  const auto newest = newest_checkpoint();
  if (setup_.events.message)
    for (const auto& line : newest.skipped) setup_.events.message(line);
  ensure(newest.checkpoint || newest.skipped.empty(), setup_.directory,
         "/checkpoints: all checkpoints are damaged; remove the run to start again");
  if (!newest.checkpoint) return;
  require_finite(*newest.checkpoint);
  restore(*newest.checkpoint);
  report_changes(*newest.checkpoint);
}

void Trainer::restore_origin(const Checkpoint& checkpoint) {
  const auto& state = checkpoint.content.state;
  const auto from = state.value("from", nlohmann::json::object());
  const std::string path = from.value("path", "");
  require(origin_.path.empty() || origin_.path == path, "resume: from is '", origin_.path,
          "' now and '", path, "' in ", checkpoint.path, "; leave it out, or use another --out");
  origin_ = {path, from.value("checksum", "")};
}

void Trainer::restore(const Checkpoint& checkpoint) {
  restore_origin(checkpoint);
  const auto& state = checkpoint.content.state;
  const auto difference = class_difference(state.value("classes", data_.classes), data_.classes);
  require(difference.empty(), "resume: the classes are not those of ", checkpoint.path, ": ",
          difference, "; use the same class folders, or another --out");
  for (const auto& [name, text] : setup_.config) {
    const auto before = setup_.before.find(name);
    const auto saved = state.at("config").value(
        name, before == setup_.before.end() ? std::string() : before->second);
    require(saved == text, "resume: ", name, " is '", text, "' now and '", saved, "' in ",
            checkpoint.path, "; use the same, or another --out");
  }
  const int64_t samples = data_.train->size(), before = state.value("samples", samples);
  require(samples == before, "resume: ", setup_.directory, " was trained on ", before,
          " samples, but the data now has ", samples, "; use the same data, or another --out");
  const int64_t tokens = data_.vocabulary, then = state.value("vocabulary", tokens);
  require(tokens == then, "resume: ", setup_.directory, " was trained with a vocabulary of ", then,
          ", but the data now has ", tokens, "; use the same data, or another --out");
  require(checkpoint.step <= total_, "resume: ", setup_.directory, " has reached step ",
          checkpoint.step, ", expected at most ", total_,
          "; raise --steps or --epochs, or use another --out");
  restore_tensors(checkpoint);
  optimizer_.state.steps = state.at("optimizer_steps");
  state_.step = checkpoint.step;
  state_.best = state.at("best");
  state_.evaluated = state.at("evaluated");
  state_.loss_sum = state.at("loss_sum");
  state_.loss_count = state.at("loss_count");
  state_.evaluation_pending = state.value("owes_evaluation", false);
  state_.last_norm = state.value("last_norm", 0.0);
  saved_ = state_.step;
}

NewestWhole Trainer::newest_checkpoint() const {
  const auto checkpoints = setup_.directory + "/checkpoints";
  if (ranks_.is_split()) return newest_of_first(world_->all(), checkpoints);
  return setup_.offload ? newest_verified(checkpoints) : newest_whole(checkpoints);
}

void Trainer::restore_tensors(const Checkpoint& checkpoint) {
  if (setup_.offload) return setup_.offload->load(checkpoint.path);
  if (ranks_.is_split()) return read_rows(checkpoint.path, content(), tables_);
  for (size_t p = 0; p < parameters_.size(); ++p) {
    auto& [name, tensor] = parameters_[p];
    copy_into(tensor, checkpoint.content.model, name);
    copy_into(optimizer_.state.first[p], checkpoint.content.optimizer, "first." + name);
    copy_into(optimizer_.state.second[p], checkpoint.content.optimizer, "second." + name);
  }
}

// Reports changed settings that may change on resume.
void Trainer::report_changes(const Checkpoint& checkpoint) const {
  const auto& saved = checkpoint.content.state;
  if (!setup_.events.message || !saved.contains("training")) return;
  const auto now = object_of(training_texts(options_));
  std::string changes;
  for (const auto& group : train_settings())
    for (const auto& setting : group.settings) {
      if (setting.of_the_run) continue;
      const auto text = now.value(setting.name, setting.before);
      const auto before = saved["training"].value(setting.name, setting.before);
      if (!text.empty() && !before.empty() && before != text)
        changes +=
            join(changes.empty() ? "" : ", ", setting.name, " ", text, " (was ", before, ")");
    }
  if (!changes.empty()) setup_.events.message("resume with changed settings: " + changes);
}

CheckpointContent Trainer::content() const {
  CheckpointContent content;
  for (size_t p = 0; p < parameters_.size(); ++p) {
    const auto& [name, tensor] = parameters_[p];
    content.model[name] = tensor;
    content.optimizer["first." + name] = optimizer_.state.first[p];
    content.optimizer["second." + name] = optimizer_.state.second[p];
  }
  content.state = {{"config", object_of(setup_.config)},
                   {"training", object_of(training_texts(options_))},
                   {"classes", data_.classes},
                   {"features", data_.features},
                   {"samples", data_.train->size()},
                   {"vocabulary", data_.vocabulary},
                   {"optimizer_steps", optimizer_.state.steps},
                   {"best", state_.best},
                   {"evaluated", state_.evaluated},
                   {"loss_sum", state_.loss_sum},
                   {"loss_count", state_.loss_count},
                   {"last_norm", state_.last_norm},
                   {"owes_evaluation", state_.evaluation_pending}};
  if (setup_.offload)
    content.written = [this](std::string_view bytes) { setup_.offload->release(bytes); };
  if (ranks_.is_split()) content.write = write_rows_to(ranks_.offset_group(), tables_);
  if (!origin_.path.empty())
    content.state["from"] = {{"path", origin_.path}, {"checksum", origin_.checksum}};
  return content;
}

void Trainer::save(bool is_best) {
  saved_ = state_.step;
  if (ranks_.is_split() && ranks_.data_index() == 0 && !world_->is_first()) write_rows(content());
  if (!world_->is_first()) return;
  log_->sync();  // entries up to this step must be on disk before the checkpoint
  store_->save(state_.step, content(), is_best);
}

}  // namespace translution
