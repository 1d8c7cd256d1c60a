import type { Entry, StateMachine } from '../../raft/index.ts';
import { hashString } from './random.ts';
import type { RegisterValue, WriteRequest } from './kit.ts';

export type RegisterCommand = { readonly type: 'open' } | ({ readonly type: 'write' } & WriteRequest);

export type RegisterResult =
  | { readonly type: 'opened'; readonly session: number }
  | { readonly type: 'written' }
  | { readonly type: 'refused'; readonly code: 'conflict' | 'session_expired'; readonly message: string };

interface Session {
  readonly answers: Record<number, RegisterResult>;
}

/** The smallest state machine with what a control plane's has: registers, revisions, and sessions with one effect a request. */
export class RegisterMachine implements StateMachine {
  #index = 0;
  #registers: Record<string, RegisterValue> = {};
  #sessions: Record<number, Session> = {};
  #hash = 0;

  get appliedIndex(): number {
    return this.#index;
  }

  /** Depends on everything that ever took effect, in order. */
  get stateHash(): string {
    return this.#hash.toString(16);
  }

  read(key: string): RegisterValue {
    return this.#registers[key] ?? { value: null, revision: 0 };
  }

  apply(entries: readonly Entry[]): (RegisterResult | null)[] {
    return entries.map((entry) => {
      this.#index = entry.index;
      if (entry.kind !== 'command') return null;
      return this.#run(entry.index, decodeCommand(entry.data));
    });
  }

  snapshot(): Uint8Array {
    const state = [this.#index, this.#registers, this.#sessions, this.#hash];
    return new TextEncoder().encode(JSON.stringify(state));
  }

  restore(data: Uint8Array, index: number): void {
    const [at, registers, sessions, hash] = JSON.parse(new TextDecoder().decode(data)) as [
      number,
      Record<string, RegisterValue>,
      Record<number, Session>,
      number,
    ];
    if (at !== index) throw new Error(`a snapshot at ${index} holds the state at ${at}`);
    this.#index = at;
    this.#registers = registers;
    this.#sessions = sessions;
    this.#hash = hash;
  }

  #run(index: number, command: RegisterCommand): RegisterResult {
    if (command.type === 'open') {
      this.#sessions[index] = { answers: {} };
      return this.#mixed(index, { type: 'opened', session: index });
    }
    const session = this.#sessions[command.session];
    if (session === undefined) {
      return { type: 'refused', code: 'session_expired', message: `there is no session ${command.session}` };
    }
    const before = session.answers[command.n];
    if (before !== undefined) return before;
    const result = this.#write(index, command);
    session.answers[command.n] = result;
    return this.#mixed(index, result);
  }

  #write(index: number, { key, value, expectedRevision }: WriteRequest): RegisterResult {
    const { revision } = this.read(key);
    if (expectedRevision !== null && expectedRevision !== revision) {
      return { type: 'refused', code: 'conflict', message: `${key} is at revision ${revision}` };
    }
    this.#registers[key] = { value, revision: index };
    return this.#mixed(index, { type: 'written' }, `${key}=${value}`);
  }

  #mixed(index: number, result: RegisterResult, what = ''): RegisterResult {
    this.#hash = hashString(`${index} ${result.type} ${what}`, this.#hash);
    return result;
  }
}

export function encodeCommand(command: RegisterCommand): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(command));
}

function decodeCommand(data: Uint8Array): RegisterCommand {
  return JSON.parse(new TextDecoder().decode(data)) as RegisterCommand;
}

export function encodeResult(result: RegisterResult): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(result));
}

export function decodeResult(data: Uint8Array): RegisterResult {
  return JSON.parse(new TextDecoder().decode(data)) as RegisterResult;
}
