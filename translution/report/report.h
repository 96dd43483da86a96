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

/// Names and values in display order; all plain text.
using ReportPairs = std::vector<std::pair<std::string, std::string>>;

/// One metric of one split over a run.
struct ReportSeries {
  struct Point {
    int64_t step;
    double epoch, value;
  };

  std::string metric;         ///< "loss", "top-1": series of the same metric share a chart
  std::string split;          ///< "train" is drawn smoothed, over a faint line of its values
  std::vector<Point> points;  ///< in ascending order of steps
};

/// How often samples of each class were predicted as each class.
struct ReportConfusion {
  std::vector<std::string> classes;
  std::vector<int64_t> counts;  ///< [classes, classes], one row per true class
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

/// Results of a run on one evaluation set; everything but `set` may be empty.
struct ReportEvaluation {
  std::string set;  ///< name, as "dynamic"
  std::optional<ReportConfusion> confusion;
  std::vector<ReportSample> samples;
  std::vector<ReportAttention> attention;
};

/// The norms of the matrices of a weight table, by offset.
struct ReportNorms {
  std::string table;           ///< name, as "layer 1 query"
  int64_t rows = 0, cols = 0;  ///< offsets: 2h-1 and 2w-1, zero in the middle; 1 row: a sequence
  std::vector<double> values;  ///< row by row
  std::vector<std::pair<std::string, double>> others;  ///< slots without an offset: class token
};

/// One run; everything but the name may be empty.
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
  bool over_epochs = false;  ///< x axis of curves: epochs; otherwise steps
  std::vector<ReportRun> runs;
};

/// A self-contained HTML page. Leaves out sections for which no run has data. Throws a one-line
/// std::invalid_argument that names the run if its data is inconsistent.
TRANSLUTION_API std::string make_report(const ReportData& data);

}  // namespace translution
