import { spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { EvenkeelError } from '../../errors.ts';

const STOP_TIMEOUT_MS = 5_000;
/** The last lines of a child's log that an error shows. */
const LINES_OF_LOG = 5;

/** One process of this same binary. What it logs goes to `<name>.log`. */
export class Child {
  readonly name: string;
  readonly logPath: string;
  readonly #process: ChildProcess;
  readonly #exited: Promise<void>;
  #readyLine: string | null = null;
  readonly #ready: Promise<string>;

  constructor(name: string, args: readonly string[], logDirectory: string) {
    this.name = name;
    this.logPath = join(logDirectory, `${name}.log`);
    const [main = ''] = process.argv.slice(1);
    const leash = new URL(`./leash${import.meta.filename.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);
    const child = spawn(process.execPath, [...process.execArgv, '--import', leash.href, main, ...args], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    child.stderr?.pipe(createWriteStream(this.logPath, { flags: 'a' }));
    this.#process = child;
    this.#exited = new Promise((resolve) => {
      child.once('exit', () => resolve());
      child.once('error', () => resolve());
    });
    this.#ready = new Promise((resolve) => {
      if (child.stdout === null) return;
      createInterface(child.stdout).on('line', (line) => {
        if (this.#readyLine !== null || !line.startsWith('ready ')) return;
        this.#readyLine = line;
        resolve(line);
      });
    });
  }

  get running(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** Resolves with the line that says it serves. Rejects with `internal` and its last words when it ends instead. */
  async ready(): Promise<string> {
    const line = await Promise.race([this.#ready, this.#exited.then(() => null)]);
    if (line !== null) return line;
    const log = await readFile(this.logPath, 'utf8').catch(() => '');
    const last = log.trimEnd().split('\n').slice(-LINES_OF_LOG).join('\n');
    throw new EvenkeelError('internal', `${this.name} ended before it was ready:\n${last}`);
  }

  async stop(): Promise<void> {
    if (!this.running) return;
    this.#process.kill('SIGTERM');
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), STOP_TIMEOUT_MS);
    await this.#exited;
    clearTimeout(timer);
  }
}
