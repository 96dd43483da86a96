#include "assets.h"

namespace translution {

extern const char *const embedded_api,
    *const embedded_chart, *const embedded_colours,
                               *const embedded_controls,
                                   *const embedded_curves,
                                       *const embedded_draw,
                                           *const embedded_icon,
                                               *const embedded_index,
                                                   *const embedded_ink,
                                                       *const embedded_look,
                                                           *const embedded_main,
                                                               *const embedded_panel,
                                                                   *const embedded_state;

namespace serve {

const Asset* find_asset(const std::string& path) {
  constexpr const char *kHtml = "text/html; charset=utf-8", *kCss = "text/css; charset=utf-8",
                       *kScript = "text/javascript; charset=utf-8", *kSvg = "image/svg+xml";
  static const Asset assets[] = {
      {"/", kHtml, embedded_index},
      {"/chart.css", kCss, embedded_chart},
      {"/look.css", kCss, embedded_look},
      {"/icon.svg", kSvg, embedded_icon},
      {"/api.js", kScript, embedded_api},
      {"/colours.js", kScript, embedded_colours},
      {"/controls.js", kScript, embedded_controls},
      {"/curves.js", kScript, embedded_curves},
      {"/draw.js", kScript, embedded_draw},
      {"/ink.js", kScript, embedded_ink},
      {"/main.js", kScript, embedded_main},
      {"/panel.js", kScript, embedded_panel},
      {"/state.js", kScript, embedded_state},
  };
  for (const auto& asset : assets)
    if (path == asset.path) return &asset;
  return nullptr;
}

}  // namespace serve
}  // namespace translution
