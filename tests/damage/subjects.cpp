#include "tests/damage/subjects.h"

#include "tests/apps/program.h"
#include "tests/data/idx_files.h"
#include "tests/data/pictures.h"
#include "tests/data/ply_files.h"
#include "tests/data/small_vocabulary.h"
#include "translution/io/checksum.h"
#include "translution/train/manifest.h"

namespace translution::testing {
namespace {

namespace fs = std::filesystem;

constexpr size_t kAll = std::numeric_limits<size_t>::max() / 2;
const std::string kCheckpoint = "checkpoints/step-00000001/";

void expect_success(const std::string& arguments) {
  const auto outcome = run(arguments);
  EXPECT_EQ(outcome.code, 0) << arguments << ": " << outcome.err;
}

// ------------------------------------------------------------------------------------- IDX

void make_idx(const std::string& path) {
  Directory source;
  write_split(source);
  fs::copy(source.path, path);
}

// ----------------------------------------------------------------------------- checkpoints

// Writes the size and checksum of the damaged model.safetensors to the manifest of a copied run.
void seal_weights(const std::string& copy) {
  const std::string path = copy + "/" + kCheckpoint, weights = path + "model.safetensors";
  auto manifest = parse_manifest(get_bytes(path + "manifest.json"));
  manifest.model = {static_cast<int64_t>(fs::file_size(weights)), checksum_of_file(weights)};
  fs::remove(path + "manifest.json");  // a hard link to the original
  put_bytes(path + "manifest.json", format_manifest(manifest));
}

// -------------------------------------------------------------------------------- images

void make_images(const std::string& path) {
  for (const std::string split : {"train", "val"})
    for (const std::string of_class : {"left", "right"}) {
      const std::string folder = path + "/" + split + "/" + of_class + "/";
      fs::create_directories(folder);
      for (int i = 0; i < 3; ++i)
        put_bytes(folder + std::to_string(i) + ".jpg",
                  to_jpeg(varied_image(50 + i, 60), Chroma::quarter));
    }
}

// ---------------------------------------------------------------------------------- text

std::string many_lines() {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "the quick brown fox " + std::to_string(i) + "\n";
  return text;
}

void make_molecules(const std::string& path) {
  std::string list;
  for (int i = 0; i < 20; ++i)
    list += std::to_string(i) + ".xyz 2 -" + std::to_string(400 + i) + ".5\n" +
            "C 0.1 -0.2 0.3\nH 1.25 0 -1e-1\n";
  fs::create_directories(path);
  put_bytes(path + "/list", list);
}

// Clouds of four points: binary PLY files of two classes, and the same kind of clouds as text.
void make_clouds(const std::string& ply, const std::string& text) {
  const std::string header =
      "element vertex 4\nproperty float x\nproperty float y\nproperty float z\n";
  fs::create_directories(text);
  for (const std::string split : {"train", "val"}) {
    std::string clouds = "axes 3\ntargets classes\n";
    for (const std::string of_class : {"left", "right"}) {
      const std::string folder = ply + "/" + split + "/" + of_class + "/";
      fs::create_directories(folder);
      for (int cloud = 0; cloud < 3; ++cloud) {
        std::string body;
        clouds += "cloud " + of_class + " 4\n";
        for (int i = 0; i < 12; ++i) {
          body += number_bytes(0.5F * static_cast<float>(i % 5 + cloud), /*big=*/false);
          clouds += std::to_string(i % 5 + cloud) + (i % 3 == 2 ? "\n" : " ");
        }
        put_bytes(folder + std::to_string(cloud) + ".ply",
                  ply_bytes("binary_little_endian", header, body));
      }
    }
    put_bytes(text + "/" + split + ".txt", clouds);
  }
}

void make_bpe(const std::string& path) {
  const auto files = small_vocabulary({{"t", "h"}, {"th", "e"}, {"q", "u"}, {"o", "x"}});
  fs::create_directories(path);
  put_bytes(path + "/encoder.json", files.encoder);
  put_bytes(path + "/vocab.bpe", files.merges);
}

struct Paths {
  explicit Paths(const TempDir& base)
      : idx(base / "idx"),
        images(base / "images"),
        pictures(base / "pictures"),
        config(base / "config"),
        bpe(base / "bpe"),
        text(base / "text.txt"),
        molecules(base / "molecules"),
        ply(base / "ply"),
        clouds(base / "clouds"),
        tokens(base / "tokens"),
        digits_run(base / "digits"),
        images_run(base / "colours"),
        text_run(base / "gpt"),
        points_run(base / "points") {}

  const std::string idx, images, pictures, config, bpe, text, molecules, ply, clouds, tokens;
  const std::string digits_run, images_run, text_run, points_run;
};

void make_pictures(const std::string& path) {
  fs::create_directories(path);
  put_bytes(path + "/one.jpg", to_jpeg(varied_image(51, 60), Chroma::quarter));
  put_bytes(path + "/one.png", encode_png(varied_image(51, 60)));
}

void make_files(const Paths& at) {
  make_idx(at.idx);
  make_images(at.images);
  make_pictures(at.pictures);
  make_bpe(at.bpe);
  put_bytes(at.text, many_lines());
  make_molecules(at.molecules);
  make_clouds(at.ply, at.clouds);
  expect_success("data text " + at.text + " --out " + at.tokens);
  const std::string train = "train --steps 1 --batch 8 --eval-limit 8 --threads 1 --out ";
  const std::string small = " --method alpha_translution --model vit-a/21 ";
  expect_success(train + at.digits_run + small + "--canvas 42 --data idx:" + at.idx);
  expect_success(train + at.images_run + small + "--image-size 42 --data images:" + at.images);
  expect_success(train + at.text_run +
                 " --method alpha_translution --model gpt-a-16 --data tokens:" + at.tokens);
  expect_success(train + at.points_run +
                 " --method alpha_translution --model cloud-tiny --data points:" + at.ply);
  fs::create_directories(at.config);
  fs::copy(at.digits_run + "/config.toml", at.config);
}

std::vector<Subject> of_images(const Paths& at) {
  const std::string read = "eval " + at.digits_run + " --data idx:{}";
  const std::string folder = "eval " + at.images_run + " --data images:{}";
  const std::string look = "predict " + at.images_run + " {}/";
  const auto jpeg = get_bytes(at.pictures + "/one.jpg");
  return {{"IDX images", at.idx, "train-images-idx3-ubyte", read, 0, 16, true, idx_lies()},
          {"IDX labels", at.idx, "train-labels.idx1-ubyte", read, 0, 8},
          {"gzip", at.idx, "t10k-images.idx3-ubyte.gz", read, 10, kAll, true, gzip_lies()},
          {"JPEG", at.pictures, "one.jpg", look + "one.jpg", 0, 2, true, jpeg_lies(jpeg)},
          {"PNG", at.pictures, "one.png", look + "one.png", 0, kAll, true, png_lies()},
          {"image folder", at.images, "val/left/0.jpg", folder, 0, 0, false}};
}

std::vector<Subject> of_runs(const Paths& at) {
  const std::string eval = "eval {} --eval-limit 8", report = "report {} --out {}/report.html";
  const std::string resume = "train --config {}/config.toml --resume auto --steps 2 --out {}";
  const std::string train =
      "train --config {}/config.toml --data digits:16 --canvas 42 --model vit-a/21 "
      "--method self_attention --steps 1 --eval-limit 8 --out {}/run";
  const std::string weights = kCheckpoint + "model.safetensors",
                    state = kCheckpoint + "optimizer.safetensors",
                    manifest = kCheckpoint + "manifest.json";
  const auto lies = safetensors_lies(get_bytes(at.digits_run + "/" + weights));
  const auto about = manifest_lies(get_bytes(at.digits_run + "/" + manifest));
  return {{"safetensors", at.digits_run, weights, eval, 0, kAll, true, lies},
          {"resealed", at.digits_run, weights, eval, 0, 8, true, lies, seal_weights},
          {"optimizer", at.digits_run, state, resume, 0, kAll},
          {"manifest", at.digits_run, manifest, eval, 0, kAll, true, about},
          {"metrics.jsonl", at.digits_run, "metrics.jsonl", report, 0, 0, false},
          {"TOML", at.config, "config.toml", train, 0, 0, false, toml_lies()}};
}

std::vector<Subject> of_points(const Paths& at) {
  const std::string eval = "eval " + at.points_run + " --data points:{}";
  return {{"PLY", at.ply, "val/left/0.ply", eval, 0, 0, false},
          {"clouds", at.clouds, "val.txt", eval, 0, 0, false}};
}

std::vector<Subject> of_text(const Paths& at) {
  const std::string eval = "eval " + at.text_run + " --eval-limit 4 --data tokens:{}";
  const std::string read = "data text " + at.text + " --tokenizer gpt2 --bpe {} --out {}/tokens";
  const auto encoder = get_bytes(at.bpe + "/encoder.json");
  return {{"tokens", at.tokens, "val.bin", eval},
          {"meta.json", at.tokens, "meta.json", eval, 0, 0, true, meta_lies()},
          {"encoder.json", at.bpe, "encoder.json", read, 0, 0, true, encoder_lies(encoder)},
          {"vocab.bpe", at.bpe, "vocab.bpe", read, 0, 0, false},
          {"molecules", at.molecules, "list", "data molecules {}/list --out {}/out", 0, 0, false,
           molecule_lies()}};
}

}  // namespace

std::vector<Subject> make_subjects(const TempDir& base) {
  const Paths at(base);
  make_files(at);
  std::vector<Subject> all;
  for (const auto& some : {of_images(at), of_runs(at), of_points(at), of_text(at)})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace translution::testing
