#pragma once

/// libtranslution_train: data, training, trained models and reports.
#include "translution/data/labelled_images.h"
#include "translution/data/sources.h"
#include "translution/data/token_files.h"
#include "translution/io/safetensors.h"
#include "translution/train/adamw.h"
#include "translution/train/evaluate.h"
#include "translution/train/metrics.h"
#include "translution/train/model_file.h"
#include "translution/train/run.h"
#include "translution/train/run_report.h"
#include "translution/train/trained.h"
#include "translution/translution.h"
