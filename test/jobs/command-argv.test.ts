import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { command, isDaybookError, type CommandOptions } from "../../src/index.ts";
import { fillArgv, parseArgv } from "../../src/jobs/command/command.ts";
import { filesFolder } from "../../src/storage/open-store.ts";
import { fc } from "../support/property.ts";

const fill = (argv: readonly string[], params: unknown): string[] =>
  fillArgv("c", parseArgv("c", argv, undefined), params);

function assertInvalid(make: () => unknown, message: RegExp, what?: string): void {
  assert.throws(
    make,
    (error) => isDaybookError(error) && error.code === "invalid" && message.test(error.message),
    what,
  );
}

test("a placeholder is replaced inside its argument, and double braces are braces", () => {
  assert.deepEqual(
    fill(["convert", "./{input}", "-resize", "{width}x{height}", "{{{input}}}", "{{}}", ""], {
      input: "a b.png",
      width: 10,
      height: 2.5,
    }),
    ["convert", "./a b.png", "-resize", "10x2.5", "{a b.png}", "{}", ""],
  );
});

test("a value fills one argument and nothing else, whatever it is", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) => {
      fc.pre(!`${a}${b}`.includes("\0"));
      assert.deepEqual(fill(["p", "--", "{a}", "x{b}{a}", "{{a}}"], { a, b }), ["p", "--", a, `x${b}${a}`, "{a}"]);
    }),
  );
});

test("what begins with a placeholder never becomes an option, except after --", () => {
  assert.deepEqual(fill(["rm", "--", "{file}"], { file: "-rf" }), ["rm", "--", "-rf"]);
  assert.deepEqual(fill(["rm", "./{file}", "--depth={n}"], { file: "-rf", n: -1 }), ["rm", "./-rf", "--depth=-1"]);
  for (const params of [
    { a: "-rf", b: "" },
    { a: "", b: "-rf" },
    { a: -1, b: 1 },
    { a: "--", b: "" },
  ]) {
    assertInvalid(
      () => fill(["rm", "{a}{b}", "--"], params),
      /would take for an option: put "--" just before the first such argument in argv, or a/,
    );
  }
});

test("-- of a program that starts another does not make operands of the other's arguments", () => {
  const attack = { file: "--use-compress-program=sh" };
  const refused = [
    ["env", "--", "tar", "-xf", "{file}"],
    ["env", "-u", "A", "B=c", "--", "tar", "{file}"],
    ["sudo", "-u", "root", "--", "tar", "-x", "{file}"],
    ["nice", "-n", "5", "--", "timeout", "-k", "1", "--", "10", "tar", "{file}"],
    ["my-wrapper", "--", "tar", "-xf", "{file}"],
    ["tar", "-cf", "out.tar", "--", "first", "{file}"],
    ["find", "--", "{file}"],
  ];
  for (const argv of refused) assertInvalid(() => fill(argv, attack), /put "--" just before the first such argument/);

  const allowed = [
    ["env", "A=b", "tar", "-x", "--", "{file}"],
    ["sudo", "-u", "root", "--", "tar", "-x", "--", "{file}", "and", "{file}"],
    ["timeout", "-s", "KILL", "10", "tar", "--", "{file}"],
    ["tar", "--directory={file}", "--", "{file}"],
  ];
  for (const argv of allowed) {
    assert.deepEqual(
      fill(argv, attack),
      argv.map((each) => each.replace("{file}", attack.file)),
    );
  }
});

test("shells and remote shells take no params, also behind programs that start them", () => {
  const refused = [
    ["sh", "-c", "echo {x}"],
    ["/bin/bash", "-o", "pipefail", "-ec", "echo {x}"],
    ["sh", "-c", "--", "{x}"],
    ["sh", "-c", 'echo "$1"', "sh", "{x}"],
    ["dash", "script.sh", "{x}"],
    ["pwsh", "-Command", "{x}"],
    ["C:\\Windows\\System32\\cmd.exe", "/c", "{x}"],
    ["ssh", "host", "{x}"],
    ["env", "-", "ssh", "host", "{x}"],
    ["ssh", "{x}", "uptime"],
    ["mosh", "host", "--", "{x}"],
    ["rsh", "host", "./{x}"],
    ["su", "root", "-c", "{x}"],
    ["watch", "ls", "{x}"],
    ["env", "sh", "-c", "{x}"],
    ["env", "-i", "A=b", "/usr/bin/zsh", "{x}"],
    ["busybox", "sh", "-c", "{x}"],
    ["nice", "-n", "10", "sudo", "-u", "root", "--", "bash", "{x}"],
    ["timeout", "--signal=KILL", "5", "ssh", "host", "{x}"],
    ["xargs", "-n", "1", "fish", "-c", "{x}"],
    ["flock", "/tmp/lock", "ksh", "{x}"],
    ["runuser", "-u", "me", "--", "ls", "{x}"],
    ["script", "-c", "{x}"],
    ["parallel", "ls", "{x}"],
    ["gosu", "me", "sh", "-c", "{x}"],
    ["tini", "-g", "--", "bash", "-c", "{x}"],
    ["dumb-init", "-c", "sh", "-c", "{x}"],
    ["nsenter", "-t", "1", "-m", "--net=/run/netns/a", "--", "sh", "-c", "{x}"],
    ["chroot", "--userspec=me", "/srv", "sh", "{x}"],
    ["setpriv", "--reuid", "me", "--clear-groups", "sh", "{x}"],
    ["unshare", "-rfp", "--mount-proc", "sh", "-c", "{x}"],
  ];
  for (const argv of refused) {
    assertInvalid(
      () => parseArgv("c", argv, undefined),
      /gives params to ".*", which makes a script of what it is given: write/,
    );
  }

  for (const argv of [
    ["sh", "-c", "date"],
    ["grep", "-r", "bash", "--", "{x}"],
    ["./sh/build", "{x}"],
    ["ssh-keygen", "-f", "./{x}"],
    ["./script", "./{x}"],
    ["/opt/shop/watch", "./{x}"],
  ]) {
    parseArgv("c", argv, undefined);
  }
});

test("a param never chooses the program that another one starts", () => {
  const refused = [
    ["env", "{x}"],
    ["env", "--", "{x}", "a"],
    ["nice", "-n", "{x}", "ls"],
    ["timeout", "{x}", "ls"],
    ["sudo", "-u", "{x}", "ls"],
    ["xargs", "-I", "{x}"],
    ["busybox", "{x}"],
    ["gosu", "{x}", "ls"],
    ["npx", "{x}"],
    ["npx", "--yes", "--package", "{x}", "tool"],
    ["env", "PATH={x}", "ls"],
    ["env", "LD_PRELOAD={x}", "ls"],
    ["env", "-i", "NODE_OPTIONS=--require={x}", "node", "app.js"],
    ["sudo", "PERL5OPT={x}", "perl", "app.pl"],
  ];
  for (const argv of refused) {
    assertInvalid(
      () => parseArgv("c", argv, undefined),
      /before the program that ".*" starts, so a param could choose the program or what it loads: place params behind/,
    );
  }
});

test("params are not given to a program that another starts in a way that is not known here", () => {
  const refused = [
    ["env", "-S", "sh -c", "{x}"],
    ["env", "-vSsh -c", "{x}"],
    ["sudo", "-s", "{x}"],
    ["sudo", "-u", "me", "-i", "ls", "{x}"],
    ["doas", "-s", "{x}"],
    ["flock", "/tmp/lock", "-c", "ls {x}"],
    ["flock", "-c", "/tmp/lock", "ls", "{x}"],
    ["setpriv", "--new-option", "sh", "-c", "{x}"],
    ["unshare", "-z", "ls", "{x}"],
    ["timeout", "--new-option", "5", "ls", "{x}"],
    ["setarch", "x86_64", "sh", "-c", "{x}"],
    ["linux32", "ls", "{x}"],
    ["systemd-run", "--user", "ls", "{x}"],
    ["expect", "-c", "{x}"],
    ["nice", "/usr/bin/valgrind", "ls", "{x}"],
  ];
  for (const argv of refused) {
    assertInvalid(
      () => parseArgv("c", argv, undefined),
      /gives params to what ".*" starts.*, and which program that is cannot be told here: write the call in a file/,
    );
  }

  for (const argv of [
    ["env", "-S", "sh -c date"],
    ["nsenter", "--new-option", "sh", "-c", "date"],
    ["./expect", "./{x}"],
    ["nsenter", "-t1", "-mun", "--", "ls", "./{x}"],
    ["sudo", "-nu", "me", "ls", "./{x}"],
  ]) {
    parseArgv("c", argv, undefined);
  }
});

test("only the program that is started counts, and only its own options", () => {
  const allowed = [
    ["git", "grep", "awk", "{x}"],
    ["git", "grep", "python", "{x}"],
    ["curl", "-o", "sed", "{x}"],
    ["python", "manage.py", "-c", "{x}"],
    ["python3", "-u", "-W", "error", "manage.py", "-e", "{x}"],
    ["python3", "-m", "shop", "-c", "{x}"],
    ["python3", "-c", "import sys", "-c", "{x}"],
    ["node", "--no-warnings", "app.js", "-e", "{x}"],
    ["node", "-r", "./hook.js", "app.js", "-p", "{x}"],
    ["node", "--some-flag", "--", "app.js", "-e", "{x}"],
    ["node", "-e", "console.log(process.argv[1])", "--", "{x}"],
    ["node", "{x}"],
    ["perl", "-n", "app.pl", "-e", "{x}"],
    ["ruby", "-rjson", "app.rb", "-e", "{x}"],
    ["php", "-d", "memory_limit=1G", "app.php", "-r", "{x}"],
    ["deno", "run", "--allow-net=a.example", "app.ts", "{x}"],
    ["docker", "exec", "shop", "sh", "-c", 'echo "$1"', "sh", "{x}"],
    ["mytool", "--language", "python", "--file", "{x}"],
  ];
  for (const argv of allowed) parseArgv("c", argv, undefined);

  const refused = [
    ["node", "--no-warnings", "-p", "{x}"],
    ["node", "-pe", "{x}"],
    ["node", "--title", "shop", "-e", "{x}"],
    ["node", "--some-option", "shop", "-e", "{x}"],
    ["node", "--import", "{x}", "app.js"],
    ["node", "--require={x}", "app.js"],
    ["php", "-d", "x=1", "-r", "{x}"],
    ["php", "-d", "auto_prepend_file={x}", "app.php"],
    ["perl", "-ne", "{x}"],
    ["perl", "-i.bak", "-lpe", "{x}", "file"],
    ["perl", "-e", "1", "-e", "{x}"],
    ["perl", "-M{x}", "app.pl"],
    ["ruby", "-rjson", "-e", "{x}"],
    ["ruby", "-W0", "-ne", "{x}"],
    ["python3", "-uc", "{x}"],
    ["python3", "-W", "error", "-c", "{x}"],
    ["python3", "-m", "{x}"],
    ["lua5.4", "-l", "json", "-e", "{x}"],
    ["Rscript", "--vanilla", "-e", "{x}"],
    ["deno", "eval", "--ext=ts", "{x}"],
    ["deno", "--quiet", "eval", "{x}"],
    ["bun", "--print", "{x}"],
    ["npx", "tsx", "-e", "{x}"],
    ["julia", "-q", "-E", "{x}"],
    ["elixir", "--eval={x}"],
    ["gosu", "me", "node", "-e", "{x}"],
    ["docker", "exec", "shop", "bash", "-lc", "echo {x}"],
    ["kubectl", "exec", "shop", "--", "python3", "-c", "print({x})"],
  ];
  for (const argv of refused)
    assertInvalid(() => parseArgv("c", argv, undefined), /puts a param into a script.*run as code/, argv.join(" "));
});

test("a definition that cannot be meant is refused with what to do", () => {
  const params = z.object({ input: z.string(), width: z.number().default(1) });
  const wrong: [object, RegExp][] = [
    [{ argv: [] }, /argv of command "c" is a list of texts, the program first/],
    [{ argv: "ls -l" }, /is a list of texts/],
    [{ argv: ["ls", 1] }, /is a list of texts/],
    [{ argv: [""] }, /argv\[0\] of command "c" is "": the program is named in full/],
    [
      { argv: ["{input}"] },
      /argv\[0\] of command "c" is "\{input\}": the program is named in full, without placeholders/,
    ],
    [
      { argv: ["ls", "{"] },
      /has a brace that belongs to no placeholder, in "\{": write \{name\} for a param, \{\{ and \}\}/,
    ],
    [{ argv: ["ls", "{}"] }, /has a brace/],
    [{ argv: ["ls", "{a b}"] }, /has a brace/],
    [{ argv: ["ls", "a}"] }, /has a brace/],
    [{ argv: ["ls", "a\0b"] }, /has an element with U\+0000/],
    [{ params, argv: ["ls", "{inptu}"] }, /has \{inptu\}, which is not one of its params: did you mean \{input\}\?/],
    [{ params, argv: ["ls", "{zzz}"] }, /which is not one of its params: it has input, width/],
    [
      { argv: ["env", "A=b", "python3", "-c", "print({x})"] },
      /puts a param into a script \(argument 4\), where it would be run as code: give it as an/,
    ],
    [{ argv: ["node", "--eval", "{x}"] }, /run as code/],
    [{ argv: ["node", "--eval={x}"] }, /run as code/],
    [{ argv: ["python3", "-c{x}"] }, /run as code/],
    [{ argv: ["perl", "-we{x}"] }, /run as code/],
    [{ argv: ["node", "-p", "{x}"] }, /run as code/],
    [{ argv: ["php", "-r", "{x}"] }, /run as code/],
    [{ argv: ["deno", "eval", "{x}"] }, /run as code/],
    [{ argv: ["my-wrapper", "sh", "-c", "echo {x}"] }, /run as code/],
    [{ argv: ["my-wrapper", "perl5.36", "-e", "{x}"] }, /run as code/],
    [{ argv: ["awk", "{x}", "file"] }, /run as code/],
    [{ argv: ["awk", "-F", ":", "-v", "a=b", "{x}", "file"] }, /run as code/],
    [{ argv: ["nice", "sed", "-n", "-e", "{x}", "file"] }, /run as code/],
    [{ argv: ["sed", "-es/a/{x}/", "file"] }, /run as code/],
    [{ argv: ["ls"], run: () => undefined }, /unknown option "run" for command "c"/],
    [{ argv: ["ls"], artefacts: [] }, /unknown option "artefacts" for command "c": did you mean "artifacts"\?/],
    [{ argv: ["ls"], cwd: "" }, /cwd of command "c" is "": give the path of a folder/],
    [{ argv: ["ls"], env: { PATH: "x" } }, /env of command "c" is a list of names and pairs/],
    [{ argv: ["ls"], env: ["A=B"] }, /env of command "c" has "A=B", which is not a name that can be set/],
    [{ argv: ["ls"], env: ["DAYBOOK_RUN_ID"] }, /not a name that can be set/],
    [{ argv: ["ls"], env: [{ A: 1 }] }, /sets "A" to 1: give a text/],
    [{ argv: ["ls"], artifacts: "*.png" }, /artifacts of command "c" is a list of patterns/],
    [{ argv: ["ls"], artifacts: ["/etc/*"] }, /patterns stay under "cwd", without "\.\." or "\/"/],
    [{ argv: ["ls"], artifacts: ["out/../../*"] }, /patterns stay under/],
    [{ argv: ["ls"], artifacts: ["{a,..}/*"] }, /patterns stay under/],
    [{ argv: ["ls"], logBytesMax: 1e9 }, /logBytesMax 1000000000 is not a whole number from 0 to 10485760/],
    [{ argv: ["ls"], attempts: 0 }, /attempts 0 is not a whole number from 1/],
  ];

  for (const [options, message] of wrong) {
    assertInvalid(
      () => command("c", options as CommandOptions<Record<string, unknown>> & { params?: undefined }),
      message,
    );
  }
});

test("a schema that takes other params too, or cannot describe itself, leaves placeholders to the enqueue", () => {
  const loose = command("loose", { params: z.looseObject({ a: z.string() }), argv: ["ls", "{b}"] });
  const opaque = command("opaque", {
    params: z.object({ a: z.string() }).transform(({ a }) => ({ b: `./${a}` })),
    argv: ["ls", "{b}"],
  });

  assert.deepEqual([loose.name, opaque.name, loose.attempts], ["loose", "opaque", 4]);
  opaque.builtIn?.check?.({ b: "./x" });
  assertInvalid(() => loose.builtIn?.check?.({ a: "x" }), /needs the param "b", which is missing/);
});

test("files are kept beside a file book and else in the working folder", () => {
  const here = process.cwd();
  assert.equal(filesFolder("shop.db", undefined), `${here}/shop.db-files`);
  assert.equal(filesFolder("file:///srv/shop.db", undefined), "/srv/shop.db-files");
  assert.equal(filesFolder(":memory:", undefined), `${here}/.daybook/files`);
  assert.equal(filesFolder("postgres://localhost/shop", undefined), `${here}/.daybook/files`);
  assert.equal(filesFolder(":memory:", "logs"), `${here}/logs`);
  assertInvalid(() => filesFolder(":memory:", ""), /files is "": give the path of a folder/);
});
