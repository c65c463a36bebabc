import Hummingbird
import NIOCore

/// The files of the page, which are in the executable.
enum Pages {
  static let overview = page(PackageResources.index_html)
  static let worker = page(PackageResources.worker_html)

  /// The files by their address. Nothing in them is private, so they need no token.
  static let assets: [String: Response] = [
    "/assets/app.css": file(PackageResources.app_css, "text/css; charset=utf-8"),
    "/assets/cards.css": file(PackageResources.cards_css, "text/css; charset=utf-8"),
    "/assets/common.js": file(PackageResources.common_js, "text/javascript; charset=utf-8"),
    "/assets/drawing.js": file(PackageResources.drawing_js, "text/javascript; charset=utf-8"),
    "/assets/overview.js": file(PackageResources.overview_js, "text/javascript; charset=utf-8"),
    "/assets/worker.js": file(PackageResources.worker_js, "text/javascript; charset=utf-8"),
    "/assets/favicon.svg": file(PackageResources.favicon_svg, "image/svg+xml"),
  ]

  /// The content security policy. All content comes from this server, nothing is written into the
  /// page's text, and no other page may embed it.
  static let policy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    + "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

  private static func page(_ bytes: [UInt8]) -> Response { file(bytes, "text/html; charset=utf-8") }

  private static func file(_ bytes: [UInt8], _ type: String) -> Response {
    Response(
      status: .ok, headers: [.contentType: type],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }
}
