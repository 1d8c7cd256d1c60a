/**
 * The closed list of what can go wrong, for every surface. A code is stable for ever; its message may be reworded.
 * `rpc` is the JSON-RPC number, `http` the status, `exit` the CLI's exit code.
 */
export const ERRORS = {
  invalid_argument: { retriable: false, rpc: -32000, http: 400, exit: 3 },
  unknown_method: { retriable: false, rpc: -32601, http: 404, exit: 2 },
  not_found: { retriable: false, rpc: -32001, http: 404, exit: 3 },
  already_exists: { retriable: false, rpc: -32002, http: 409, exit: 4 },
  conflict: { retriable: false, rpc: -32003, http: 409, exit: 4 },
  refused: { retriable: false, rpc: -32004, http: 409, exit: 4 },
  stale: { retriable: false, rpc: -32005, http: 409, exit: 4 },
  limit_exceeded: { retriable: false, rpc: -32006, http: 413, exit: 3 },
  no_leader: { retriable: true, rpc: -32010, http: 503, exit: 5 },
  unavailable: { retriable: true, rpc: -32011, http: 503, exit: 5 },
  overloaded: { retriable: true, rpc: -32012, http: 429, exit: 5 },
  deadline_exceeded: { retriable: true, rpc: -32013, http: 504, exit: 124 },
  outcome_unknown: { retriable: true, rpc: -32014, http: 504, exit: 124 },
  session_expired: { retriable: false, rpc: -32015, http: 409, exit: 4 },
  must_register: { retriable: false, rpc: -32020, http: 409, exit: 4 },
  stale_incarnation: { retriable: false, rpc: -32021, http: 409, exit: 4 },
  broker_connected: { retriable: false, rpc: -32022, http: 409, exit: 4 },
  wrong_cluster: { retriable: false, rpc: -32023, http: 409, exit: 4 },
  protocol_error: { retriable: false, rpc: -32024, http: 400, exit: 1 },
  directory_in_use: { retriable: false, rpc: -32030, http: 500, exit: 4 },
  wrong_directory: { retriable: false, rpc: -32031, http: 500, exit: 4 },
  corrupt: { retriable: false, rpc: -32032, http: 500, exit: 70 },
  disk_failed: { retriable: false, rpc: -32033, http: 500, exit: 70 },
  address_in_use: { retriable: false, rpc: -32034, http: 500, exit: 1 },
  insecure_listen: { retriable: false, rpc: -32035, http: 500, exit: 2 },
  unreachable: { retriable: true, rpc: -32036, http: 503, exit: 5 },
  internal: { retriable: false, rpc: -32603, http: 500, exit: 1 },
} as const satisfies Record<string, ErrorKind>;

interface ErrorKind {
  retriable: boolean;
  rpc: number;
  http: number;
  exit: number;
}

export type ErrorCode = keyof typeof ERRORS;

/** Every error that reaches a user. The message names what is wrong and what to do. */
export class EvenkeelError extends Error {
  readonly code: ErrorCode;
  /** Further facts for programs, as the surface prints them (`leader`, `revision`, `outcome`). */
  readonly data: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, data: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.name = 'EvenkeelError';
    this.code = code;
    this.data = data;
  }

  get retriable(): boolean {
    return ERRORS[this.code].retriable;
  }
}
