// A client of checkpoint-manager for Node.js 18 or newer, without any package. README.md beside this file says how to use it.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const LINE_FEED = 0x0a;
const NOT_ONE_LINE = /\n|^[ \t\r]*$/; // to which there would be another number of answers than one
const AHEAD = 100; // requests that `each` sends before it waits for an answer
const RUNNER = fileURLToPath(new URL("../../runner.py", import.meta.url));
const ENVIRONMENT = fileURLToPath(new URL("../../.venv/bin/python", import.meta.url));

/** The answer was no: `code` is for programs, the message for people. */
export class Refused extends Error {
  constructor(answer) {
    super(`${answer.code}: ${answer.error}`);
    this.name = "Refused";
    this.code = answer.code;
  }
}

/** The worker ended before it answered. Whether the request was carried out is not known; a `get` tells. */
export class WorkerEnded extends Error {
  constructor(message) {
    super(message);
    this.name = "WorkerEnded";
  }
}

/** One worker process. Requests may be sent without waiting; each gets its own answer, since answers keep their order. */
export class Checkpoints {
  #worker;
  #waiting = [];
  #rest = [];
  #ended;
  #failure = null;

  /** `python` is the one that has the packages; `env` is added to the environment; logs go to our own stderr. */
  constructor({ python = process.env.PYTHON ?? pythonOfTheCheckout(), runner = RUNNER, env = {}, cwd } = {}) {
    this.#worker = spawn(python, [runner], { env: { ...process.env, ...env }, cwd, stdio: ["pipe", "pipe", "inherit"] });
    this.#worker.stdout.on("data", (chunk) => this.#take(chunk));
    this.#worker.stdin.on("error", () => {}); // a worker that has gone is told of by its end
    this.#ended = new Promise((resolve) => {
      this.#worker.on("error", (error) => this.#end(`the worker cannot be started: ${error.message}`, resolve, null));
      this.#worker.on("close", (status, signal) => this.#end(`the worker ended (${signal ?? status})`, resolve, status));
    });
  }

  /** The data of the answer. Throws Refused, or WorkerEnded. */
  async ask(action, fields = {}) {
    const answer = JSON.parse(await this.line(JSON.stringify({ action, ...fields })));
    if (!answer.success) {
      throw new Refused(answer);
    }
    return answer.data;
  }

  /**
   * The answer to one line, both as text without line ends. This is the way around JSON.parse, which knows integers up to
   * 2^53 only. Throws WorkerEnded.
   */
  line(request) {
    return new Promise((resolve, reject) => {
      if (NOT_ONE_LINE.test(request)) {
        reject(new TypeError("a request is one line that is not blank"));
      } else if (this.#failure !== null) {
        reject(new WorkerEnded(this.#failure));
      } else {
        this.#waiting.push({ resolve, reject });
        this.#worker.stdin.write(`${request}\n`);
      }
    });
  }

  /**
   * The answers to many requests, in their order, however many there are: only so many are under way at a time, and
   * answers are read while requests are written. `requests` may be any iterable of objects. Throws WorkerEnded.
   */
  async *each(requests) {
    const underWay = [];
    for await (const request of requests) {
      const answer = this.line(JSON.stringify(request));
      answer.catch(() => {}); // it is thrown below, when its turn has come
      underWay.push(answer);
      if (underWay.length >= AHEAD) {
        yield JSON.parse(await underWay.shift());
      }
    }
    for (const answer of underWay) {
      yield JSON.parse(await answer);
    }
  }

  /** Lets the worker answer what it has got, and waits for its end: its exit status, null where a signal ended it. */
  async close() {
    this.#worker.stdin.end();
    return this.#ended;
  }

  // Lines end with a line feed and nothing else; `readline` would also cut at U+2028, which may be part of a state.
  #take(chunk) {
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      this.#rest.push(chunk.subarray(start, end));
      this.#waiting.shift().resolve(Buffer.concat(this.#rest).toString("utf8"));
      this.#rest = [];
      start = end + 1;
    }
    if (start < chunk.length) {
      this.#rest.push(chunk.subarray(start));
    }
  }

  #end(failure, resolve, status) {
    this.#failure ??= failure;
    for (const { reject } of this.#waiting.splice(0)) {
      reject(new WorkerEnded(this.#failure));
    }
    resolve(status);
  }
}

function pythonOfTheCheckout() {
  return existsSync(ENVIRONMENT) ? ENVIRONMENT : "python3";
}
