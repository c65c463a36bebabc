import Policy
import Testing

@testable import PolicyFile

@Suite("Imports of pm2's ecosystem file and of Podman's Quadlets") struct EcosystemImportTests {
  private func readFlat(_ result: ParseResult<ImportedConfiguration>) throws -> (
    text: String, DaemonConfiguration
  ) {
    let (text, configuration) = try readImport(result, environment: ["HOME": "/root"])
    // Comments are broken into lines, which are joined here.
    return (text.replacing("\n    #", with: "").replacing("\n#", with: ""), configuration)
  }

  private func pm2(
    _ text: String, _ file: String = "ecosystem.config.js"
  ) throws -> (text: String, DaemonConfiguration) {
    try readFlat(PM2Import.convert(text: text, file: file))
  }

  @Test func `An ecosystem.config.js of literals becomes workers`() throws {
    let (text, configuration) = try pm2(
      #"""
      'use strict';
      // https://pm2.keymetrics.io
      module.exports = {
        apps: [{
          name: 'my api',   // with a blank
          script: './dist/main.js',
          args: ["--port", 3000, 'it\'s'],
          node_args: '--max-old-space-size=512 --title "a b"',
          cwd: `/srv/api`,
          instances: 2, exec_mode: 'cluster',
          env: { NODE_ENV: "production", PORT: 0xBB8, PRICE: '$5' },
          env_staging: { NODE_ENV: 'staging' },
          max_memory_restart: '300M', kill_timeout: 3_000, restart_delay: 4000, max_restarts: 10,
          out_file: 'out.log', error_file: 'err.log', watch: false, ignore_watch: ['x'],
          wait_ready: true, cron_restart: '0 3 * * *', time: true,
        },
        { script: 'worker.py', autorestart: false, namespace: 'jobs', },
        { name: "web", script: "npm", args: "start -- --flag" },
        { name: "line", script: "serve -s build | cat" }, /* the last */
        ],
        deploy: { production: {} },
      };
      """#)
    let api = try #require(configuration.workers.first)
    #expect(api.name == "my-api-1" && text.contains("Its name was `my api`"))
    #expect(
      api.command == [
        "node", "--max-old-space-size=512", "--title", "a b", "./dist/main.js", "--port", "3000",
        "it's",
      ])
    let instance = ["INSTANCE": "1"]
    #expect(
      api.environment.merging(instance) { $1 }
        == ["NODE_ENV": "production", "PORT": "3000", "PRICE": "$5", "INSTANCE": "1"])
    #expect(api.stopSignal == 2 && api.policy.terminate.grace == .seconds(3))
    #expect(api.restart.condition == .always && api.restart.backoff.initial == .seconds(4))
    #expect(api.limits.footprint?.restart == .megabytes(300))
    for comment in [
      "share one port", "`env_staging`, which pm2 adds with `--env staging`", "one log here",
      "`wait_ready`", "dormouse restart", "counted within a day", "Not taken over: `deploy`",
    ] {
      #expect(text.contains(comment), "\(comment)\n\(text)")
    }
    #expect(!text.contains("ignore_watch"))
    let others = configuration.workers.filter { !$0.name.hasPrefix("my-api") }
    #expect(others.map(\.name) == ["worker", "web", "line"])
    #expect(others[0].command == ["python3", "worker.py"] && others[0].groups == ["jobs"])
    #expect(!others[0].restart.condition.restartsAfterExit)
    #expect(others[1].command == ["npm", "start", "--", "--flag"])
    #expect(others[2].command == ["sh", "-c", "serve -s build | cat"])
  }

  @Test(
    "A script of pm2 with a blank is a shell's line, whatever its ending is",
    arguments: [
      (#"{"script": "node dist/main.js"}"#, ["node", "dist/main.js"]),
      (#"{"script": "npm start", "args": "x", "interpreter": "none"}"#, ["npm", "start"]),
      (#"{"script": "A=1 ./run.sh"}"#, ["sh", "-c", "A=1 ./run.sh"]),
      (#"{"script": "my app.py", "interpreter": "python3"}"#, ["python3", "my app.py"]),
    ])
  func lines(text: String, command: [String]) throws {
    #expect(try pm2(text, "ecosystem.json").1.workers.map(\.command) == [command])
  }

  @Test(
    "JSON, YAML, one app alone and a list of them are read, too",
    arguments: [
      (#"{"apps": [{"name": "a", "script": "a.js"}]} // end"#, "ecosystem.json"),
      (#"[{"name": "a", "script": "a.js"}]"#, "process.json"),
      (#"{"name": "a", "script": "a.js"}"#, "pm2.json"),
      ("apps:\n- name: a\n  script: a.js\n", "ecosystem.yml"),
      ("export default { apps: { name: 'a', 'script': 'a.js' } }", "ecosystem.config.mjs"),
    ])
  func otherForms(text: String, file: String) throws {
    #expect(try pm2(text, file).1.workers.map(\.command) == [["node", "a.js"]])
  }

  @Test(
    "Code that would have to be run is an error with its position",
    arguments: [
      ("const path = require('path');\nmodule.exports = {}", 1, 1, "`const`"),
      ("module.exports = {\n  apps: [{ script: path.join('a') }]\n}", 2, 20, "`path.join(`"),
      ("module.exports = {\n  apps: [{ env: { A: process.env.A } }] }", 2, 22, "`process.env.A`"),
      ("module.exports = { apps: [{ name: 'a' + 'b' }] }", 1, 39, "`+`"),
      ("module.exports = { apps: [{ name: `a${1}` }] }", 1, 37, "evaluated"),
      ("module.exports = { apps: [{ ...base }] }", 1, 29, "isn't a literal"),
      ("module.exports = { apps }", 1, 25, "`}`"),
      ("module.exports = { apps: [ { script: 'a", 1, 38, "no end"),
      ("module.exports = { apps: [] }; start()", 1, 32, "`start(`"),
      ("module.exports = () => ({})", 1, 18, "isn't a literal"),
      ("{ \"apps\": 1 }", 1, 1, "no list `apps`"),
      ("module.exports = { apps: [{ name: 'a' }] }", 1, 27, "no `script`"),
      ("[{script: 'a.js'},\n {script: 'b/a.js'}]", 2, 2, "given twice"),
    ])
  func programs(text: String, line: Int, column: Int, message: String) throws {
    let result = PM2Import.convert(text: text, file: "ecosystem.config.js")
    let error = try #require(result.errors.first, "\(text)")
    #expect(result.value == nil)
    #expect(error.position == Position(line: line, column: column), "\(result.rendered)")
    #expect(error.message.contains(message), "\(error.message)")
  }

  @Test func `Much nesting is an error, and no crash`() {
    let text = "module.exports = " + String(repeating: "[", count: 100_000)
    let result = PM2Import.convert(text: text, file: "e.js")
    #expect(result.rendered.contains("levels are nested"))
  }

  @Test("A Quadlet becomes a worker that isn't started, with notes on what only a container has")
  func quadlet() throws {
    let result = QuadletImport.convert(
      text: #"""
        [Unit]
        Description=The web server
        After=db.service

        [Container]
        Image=docker.io/library/nginx:1
        ContainerName=web
        Entrypoint=["/usr/sbin/nginx", "-g", "daemon off;"]
        Exec=-c /etc/nginx.conf
        Environment=A=1 "B=2 3"
        PublishPort=8080:80
        Volume=data.volume:/var/lib:Z
        Network=front.network
        AddCapability=NET_ADMIN
        HealthCmd=curl -f http://localhost
        HealthInterval=30s
        HealthRetries=5
        StopSignal=SIGQUIT
        StopTimeout=20
        Memory=512m

        [Service]
        Restart=always
        RestartSec=5

        [Install]
        WantedBy=default.target
        """#, file: "/home/me/.config/containers/systemd/web.container"
    ) { _ in true }
    let (text, configuration) = try readFlat(result)
    let worker = try #require(configuration.workers.first)
    #expect(worker.name == "web" && !worker.autostart)
    #expect(
      worker.command == ["/usr/sbin/nginx", "-g", "daemon off;", "-c", "/etc/nginx.conf"])
    #expect(worker.environment == ["A": "1", "B": "2 3"])
    #expect(worker.stopSignal == 3 && worker.policy.terminate.grace == .seconds(20))
    #expect(worker.restart.condition == .always && worker.limits.memory == .megabytes(512))
    #expect(text.contains("periodSeconds: 30") && text.contains("failureThreshold: 5"))
    for comment in [
      "Its image: `docker.io/library/nginx:1`", "`PublishPort=8080:80`", "`data.volume:/var/lib:Z`",
      "Not taken over: `Network`", "Not taken over: `AddCapability`", "by a label",
    ] {
      #expect(text.contains(comment), "\(comment)\n\(text)")
    }
    #expect(!text.contains("ContainerName") && !text.contains("WantedBy"))
  }

  @Test("Arguments for an entrypoint keep their dash, and a note names an image's own command")
  func entrypoint() throws {
    let some = try readFlat(
      QuadletImport.convert(text: "[Container]\nExec=--port 80\n", file: "a.container") { _ in true
      })
    #expect(some.1.workers.first?.command == ["--port", "80"])
    #expect(some.text.contains("the image's entrypoint"))
    let none = try readFlat(
      QuadletImport.convert(text: "[Container]\nImage=x\n", file: "a.container") { _ in true })
    #expect(
      none.1.workers.first?.command == ["false"] && none.text.contains("command is the image's"))
    let other = QuadletImport.convert(text: "[Pod]\n", file: "a.container") { _ in true }
    #expect(other.value == nil && other.rendered.contains("no `[Container]`"))
  }
}
