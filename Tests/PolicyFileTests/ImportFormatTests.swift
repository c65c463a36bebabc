import PolicyFile
import Testing

@Suite("The format of an imported file") struct ImportFormatTests {
  @Test(
    "It is known by the name, and of YAML by what is in it",
    arguments: [
      ("Procfile", "web: x", ImportFormat.procfile), ("Procfile.dev", "", .procfile),
      ("a.service", "", .unit), ("supervisord.conf", "", .supervisor), ("a.ini", "", .supervisor),
      ("dev.yml", "services: { a: { command: x } }", .compose),
      ("dev.yml", "include: [a.yml]", .compose),
      ("compose.yaml", "processes: { a: { command: x } }", .processCompose),
      ("compose.yaml", "processes: {}\nservices: {}", .compose),
      ("dev.yml", "processes: {}\nservices: {}", .processCompose),
      ("compose.yaml", "a: [", .compose), ("dev.yml", "a: [", .processCompose),
      ("ecosystem.config.js", "module.exports = { apps: [] }", .pm2), ("e.cjs", "apps", .pm2),
      ("process.json", #"[{"script": "a.js"}]"#, .pm2), ("ecosystem.yml", "apps: []", .pm2),
      ("web.container", "", .quadlet),
    ])
  func recognized(name: String, text: String, format: ImportFormat) {
    #expect(ImportFormat(fileName: name, text: text) == format)
  }

  @Test(arguments: ["index.js", "package.cjs", "data.json", "a.toml", "a.ts"])
  func `A program or data is no Procfile`(name: String) {
    #expect(ImportFormat(fileName: name, text: "module.exports = {\n  a: [\n") == nil)
  }

  @Test func `A YAML file of pm2 is refused with the reason`() {
    let result = ProcessComposeImport.convert(text: "apps: [{ script: a.js }]", file: "a.yml")
    #expect(result.value == nil && result.rendered.contains("pm2"), "\(result.rendered)")
  }

  @Test(
    "process-compose's texts get the values of the `.env` beside the file, its commands the file")
  func environmentFile() throws {
    let result = ProcessComposeImport.convert(
      text: """
        processes:
          core:
            working_dir: "${APP_DIR}/core"
            command: ./run $APP_DIR
            environment: ["P=${DB_PASSWORD}", "Q=${NONE}$$"]
        """, file: "process-compose.yaml", environmentFile: "APP_DIR=/srv/app\nDB_PASSWORD=s3cret\n"
    )
    let text = try #require(result.value, "\(result.rendered)").text
    #expect(text.contains("directory: \"${APP_DIR:-/srv/app}/core\""), "\(text)")
    #expect(text.contains("env_file: [.env]"), "\(text)")
    #expect(text.contains("P: \"${DB_PASSWORD:-s3cret}\"") && text.contains("Q: \"${NONE:-}$$\""))
  }
}
