#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "translution/core/export.h"
#include "translution/io/image.h"
#include "translution/report/attention_picture.h"

namespace translution {

/// Names with what belongs to them, in the order of display; all plain text.
using ReportPairs = std::vector<std::pair<std::string, std::string>>;

/// One metric of one split over a run.
struct ReportSeries {
  struct Point {
    int64_t step;
    double epoch, value;
  };

  std::string metric;         ///< "loss", "top-1": series of the same metric share a picture
  std::string split;          ///< "train" is drawn as its mean over the faint line itself
  std::vector<Point> points;  ///< by rising step
};

/// How often each class was taken for each.
struct ReportConfusion {
  std::vector<std::string> classes;
  std::vector<int64_t> counts;  ///< classes x classes, a row per true class
};

struct ReportSample {
  RgbImage image;
  std::string truth, predicted;
  double probability = 0;  ///< of the predicted class
};

struct ReportAttention {
  std::string caption;
  AttentionPicture picture;
};

/// How a run does on one evaluation set; all but the name may be missing.
struct ReportEvaluation {
  std::string set;  ///< "dynamic"
  std::optional<ReportConfusion> confusion;
  std::vector<ReportSample> samples;
  std::vector<ReportAttention> attention;
};

/// The norm of the learned matrix of each offset.
struct ReportNorms {
  std::string table;           ///< "layer 1 query"
  int64_t rows = 0, cols = 0;  ///< offsets: 2h-1 and 2w-1, zero in the middle; one row: a sequence
  std::vector<double> values;  ///< row by row
  std::vector<std::pair<std::string, double>> others;  ///< of matrices off the grid: class token
};

/// All but the name may be missing.
struct ReportRun {
  std::string name;
  ReportPairs summary;  ///< best and last metrics, parameters, seconds, machine
  ReportPairs config;
  std::vector<ReportSeries> series;
  std::vector<ReportEvaluation> evaluations;
  std::vector<ReportNorms> norms;
};

struct ReportData {
  std::string title, subtitle;
  bool over_epochs = false;  ///< curves over epochs; else over steps
  std::vector<ReportRun> runs;
};

/// One HTML file that needs nothing else. Sections for which no run has data are left out; data
/// that does not fit together is refused in one line that names the run.
TRANSLUTION_API std::string make_report(const ReportData& data);

}  // namespace translution
