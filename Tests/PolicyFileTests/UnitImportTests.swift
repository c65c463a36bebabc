import Policy
import Testing

@testable import PolicyFile

@Suite("Imports of systemd's services and of supervisord's programs") struct UnitImportTests {
  /// Converts one file, where all other files exist.
  private func convert(_ text: String, path: String = "a.service") -> ParseResult<
    ImportedConfiguration
  > {
    UnitImport.convert(unit: "a.service", files: [.init(path: path, text: text)]) { _ in true }
  }

  private func unit(
    _ name: String, _ texts: String..., pathExists: @escaping (String) -> Bool = { _ in true }
  ) throws -> (text: String, DaemonConfiguration) {
    let files = texts.enumerated().map {
      UnitImport.File(path: "/etc/systemd/system/\($0.offset)", text: $0.element)
    }
    return try readImport(
      UnitImport.convert(unit: name, files: files, pathExists: pathExists),
      environment: ["HOME": "/root", "PORT": "8080"])
  }

  @Test("Debian's redis unit becomes a worker with the same command, limits and ending")
  func redis() throws {
    let (text, configuration) = try unit(
      "redis-server.service",
      """
      [Unit]
      Description=Advanced key-value store
      After=network.target
      Documentation=http://redis.io/documentation, man:redis-server(1)

      [Service]
      Type=notify
      ExecStart=/usr/bin/redis-server /etc/redis/redis.conf --supervised systemd --daemonize no
      PIDFile=/run/redis/redis-server.pid
      TimeoutStopSec=0
      Restart=always
      User=redis
      Group=redis
      RuntimeDirectory=redis
      RuntimeDirectoryMode=2755
      UMask=007
      PrivateTmp=true
      LimitNOFILE=65535
      PrivateDevices=true
      ProtectHome=true
      ReadWriteDirectories=-/var/lib/redis

      [Install]
      WantedBy=multi-user.target
      Alias=redis.service
      """)
    let worker = configuration.workers[0]
    #expect(worker.name == "redis-server" && worker.user == "redis" && worker.umask == 7)
    #expect(
      worker.command == [
        "/usr/bin/redis-server", "/etc/redis/redis.conf", "--supervised", "systemd",
        "--daemonize", "no",
      ])
    #expect(worker.readiness == .notify && worker.restart.condition == .always)
    #expect(worker.limits.resources[.nofile]?.soft == 65535)
    // 0 is no limit: redis may write its memory to the disk at its end.
    #expect(worker.policy.terminate.grace == .seconds(3600))
    // systemd creates /run/redis, and Dormouse doesn't.
    #expect(!worker.autostart && text.contains("`/run/redis`"), "\(text)")
    let flat = text.replacing("\n    #", with: "")
    #expect(
      flat.contains("its sandbox (PrivateTmp, PrivateDevices, ProtectHome, ReadWriteDirectories)"))
  }

  @Test("Variables, drop-ins, reload commands and times are read as systemd reads them")
  func sshd() throws {
    let (text, configuration) = try unit(
      "ssh.service",
      """
      [Service]
      # A comment
      EnvironmentFile=-/etc/default/none
      Environment="A=b c" D=%p 'E=$x'
      ExecStartPre=/usr/sbin/sshd -t
      ExecStart=/usr/sbin/sshd -D \\
          $SSHD_OPTS -o "Port ${PORT}"
      ExecReload=/usr/sbin/sshd -t
      ExecReload=/bin/kill -HUP $MAINPID
      ExecStop=-/usr/sbin/sshd-stop --wait $MAINPID
      KillSignal=SIGQUIT
      TimeoutStopSec=1min 30s
      Restart=on-failure
      RestartSec=100ms
      """, "[Service]\nRestartSec=5\nMemoryMax=1G\nWorkingDirectory=~\n",
      pathExists: { _ in false })
    #expect(!text.contains("env_file:") && text.contains("/etc/default/none isn't there"))
    #expect(text.contains(#""exec /usr/sbin/sshd -D $SSHD_OPTS -o \"Port $${PORT}\"""#), "\(text)")
    #expect(text.contains("reload_signal: HUP") && text.contains("ExecReload=/usr/sbin/sshd -t"))
    #expect(text.contains("stop_signal: QUIT") && text.contains("stop_grace: 90s"), "\(text)")
    #expect(
      configuration.workers[0].stopCommand
        == ["sh", "-c", "exec /usr/sbin/sshd-stop --wait $DORMOUSE_WORKER_PID"], "\(text)")
    #expect(text.contains("directory: ${HOME}") || text.contains("directory: \"${HOME}\""))
    #expect(configuration.workers[0].environment == ["A": "b c", "D": "ssh", "E": "$x"])
    #expect(configuration.workers[0].restart.backoff.initial == .seconds(5), "\(text)")
  }

  @Test("A file of variables that is there is read, and one that may not be missing, too")
  func environmentFiles() throws {
    let text = "[Service]\nExecStart=/bin/a\nEnvironmentFile=-/etc/a\nEnvironmentFile=/etc/b\n"
    let file = UnitImport.File(path: "a.service", text: text)
    let result = UnitImport.convert(unit: "a.service", files: [file]) { $0 == "/etc/a" }
    #expect(result.value?.text.contains("env_file: [/etc/a, /etc/b]") == true, "\(result)")
  }

  @Test func `An instance of a template has its name instead of %i`() throws {
    let (_, configuration) = try unit(
      "bot@alice.service",
      "[Service]\nExecStart=/bin/bot --for %i 100%% ${X} ${NONE}\nEnvironment=X=1\nUser=%i\n")
    let worker = configuration.workers[0]
    #expect(worker.name == "bot-alice" && worker.user == "alice")
    #expect(worker.command == ["/bin/bot", "--for", "alice", "100%", "1", ""])
  }

  @Test(arguments: [
    "Type=forking", "DynamicUser=yes", "Sockets=web.socket", "RuntimeDirectory=web",
    "Environment=A=%H",
  ])
  func `A service that can't run as it is isn't started`(line: String) throws {
    let (text, configuration) = try unit("web.service", "[Service]\nExecStart=/bin/web\n\(line)\n")
    #expect(!configuration.workers[0].autostart, "\(text)")
  }

  @Test func `The directories of a user's unit aren't guessed`() {
    let result = convert(
      "[Service]\nExecStart=/bin/a %t/x\nStateDirectory=a\nKillMode=process\n",
      path: "/usr/lib/systemd/user/a.service")
    let text = result.value?.text ?? ""
    #expect(text.contains("/bin/a, \"%t/x\"") && text.contains("`%t`"), "\(text)")
    #expect(text.contains("autostart: false") && text.contains("`KillMode=process`"), "\(text)")
  }

  @Test func `A file that is no service, or has no single command, is an error`() {
    for text in ["", "[Socket]\nListenStream=80", "[Service]\nType=oneshot", "x=1", "[Service"] {
      let result = convert(text)
      #expect(result.value == nil && !result.errors.isEmpty, "\(text)")
    }
  }

  @Test func `Escapes are read as systemd reads them, and one that it doesn't know stays`() throws {
    let (_, configuration) = try unit(
      "a.service",
      #"""
      [Service]
      ExecStart=/usr/bin/app "(a|b)\.service\d" "\101\x41\u00e9\xc3\xa9" a\sb \; ;x '\'' \x0g \0 ;
      """# + "\n")
    #expect(
      configuration.workers[0].command == [
        "/usr/bin/app", #"(a|b)\.service\d"#, "AAéé", "a b", ";", ";x", "'", #"\x0g"#, #"\0"#,
      ], "a lone `;` at the end ends no second command")
  }

  @Test(arguments: [
    "ExecStart=/bin/mkdir -p /tmp/a ; /bin/touch /tmp/a/b",
    "ExecStart=/bin/a\nExecStart=/bin/b",
  ])
  func `A service with several commands is refused with the line`(lines: String) {
    let result = convert("[Service]\nType=oneshot\n\(lines)\n")
    let line = lines.contains("\n") ? 4 : 3
    let message = "a.service:\(line):1: error: `ExecStart` has 2 commands, a worker one"
    #expect(result.value == nil && result.rendered.contains(message), "\(result.rendered)")
  }

  @Test func `An output of errors alone gets a note`() throws {
    let text = try unit(
      "a.service", "[Service]\nExecStart=/bin/a\nStandardError=append:/var/log/a.err\n"
    ).0
    #expect(text.contains("`StandardError=append:/var/log/a.err`"), "\(text)")
  }

  @Test func `A template without an instance isn't started, and %i stays`() throws {
    let (text, configuration) = try unit(
      "app@.service", "[Service]\nUser=www-%i\nExecStart=/usr/bin/app /etc/app/%i.ini\n")
    #expect(!configuration.workers[0].autostart && text.contains("`%i`"), "\(text)")
    #expect(configuration.workers[0].command == ["/usr/bin/app", "/etc/app/%i.ini"])
  }

  @Test("Comments of supervisord begin with ` #`, too")
  func supervisorComments() throws {
    let worker = try readImport(
      SupervisorImport.convert(
        text: """
          [program: app]
          command=/usr/bin/app --x=a#b  # the service
          directory=/srv/app        # here
          autostart=true # at the start
          autorestart=true # always
          stopsignal=INT # ctrl-c
          stdout_logfile=a.log
          stdout_logfile_maxbytes=1000000
          """, file: "supervisord.conf", directory: "/srv")
    ).1.workers[0]
    #expect(worker.name == "app" && worker.command == ["/usr/bin/app", "--x=a#b"])
    #expect(worker.directory == "/srv/app" && worker.autostart && worker.stopSignal == 2)
    #expect(worker.restart.condition == .always && worker.output.maxSize == ByteCount(1_000_000))
  }

  @Test("Variables of supervisord in numbers and choices get a note, and a user's stays a variable")
  func supervisorVariables() throws {
    let keys = ["numprocs", "autostart", "autorestart", "startretries", "stopwaitsecs", "umask"]
    let lines = keys.map { "\($0)=%(ENV_X)s" }.joined(separator: "\n")
    let text = try #require(
      SupervisorImport.convert(
        text: "[program:q]\ncommand=/usr/bin/q\nuser=%(ENV_WHO)s\n\(lines)\n",
        file: "supervisord.conf", directory: "/srv"
      ).value
    ).text
    for key in keys { #expect(text.contains("`\(key)=%(ENV_X)s`"), "\(text)") }
    #expect(text.contains("user: \"${WHO}\"") && text.contains("autostart: false"), "\(text)")
  }

  @Test("Programs of supervisord become workers, with groups, copies and their variables")
  func supervisor() throws {
    let (text, configuration) = try readImport(
      SupervisorImport.convert(
        text: """
          ; a comment
          [supervisord]
          environment=GLOBAL="1"
          [program:bot]
          command=/bin/bot --n %(process_num)02d
            --more
          numprocs=2
          startretries=5
          [program:web]
          command=/bin/web %(ENV_PORT)s "%(here)s/www root" '${x}' ; inline
          environment=A="x,y",B='$z'
          autorestart=true
          priority=5
          stopsignal=QUIT
          stopwaitsecs=20
          stdout_logfile=web.log
          stdout_logfile_maxbytes=10MB
          redirect_stderr=true
          [program:odd]
          command=/bin/odd %(unknown)s
          autostart=true
          [group:all]
          programs=web,bot
          """, file: "supervisord.conf", directory: "/srv"), environment: ["PORT": "8080"])
    let workers = configuration.workers
    #expect(workers.map(\.name) == ["web", "bot-0", "bot-1", "odd"])
    #expect(workers[0].command == ["/bin/web", "8080", "/srv/www root", "${x}"])
    #expect(workers[0].environment == ["GLOBAL": "1", "A": "x,y", "B": "$z"])
    #expect(workers[0].groups == ["all"] && workers[1].groups == ["all", "bot"])
    #expect(workers[0].restart.condition == .always && workers[0].stopSignal == 3)
    #expect(workers[0].output.maxSize == .megabytes(10))
    #expect(workers[2].command == ["/bin/bot", "--n", "01", "--more"])
    #expect(workers[2].restart.giveUp?.restarts == 5)
    #expect(!workers[3].autostart && text.contains("`%(unknown)s`"), "\(text)")
  }

  @Test(arguments: [
    ("[program:a b]\ncommand=x", "supervisord.conf:1:1: error: `a b` can't be a worker's name"),
    ("[program:a]\nautostart=true", "has no `command` that can be read"),
    ("[program:a]\ncommand=x 'y", "has no `command` that can be read"),
    ("command=x", "stands before the first"), ("[program:a", "has `[` without its `]`"),
    ("[include]\nfiles = /etc/supervisor/conf.d/*.conf", "/etc/supervisor/conf.d/*.conf"),
    ("[inet_http_server]\nport=9001", "no `[program:NAME]`"),
  ])
  func `A wrong supervisord.conf is an error with its position`(text: String, message: String) {
    let result = SupervisorImport.convert(text: text, file: "supervisord.conf", directory: "/")
    #expect(result.value == nil && result.rendered.contains(message), "\(result.rendered)")
  }
}
