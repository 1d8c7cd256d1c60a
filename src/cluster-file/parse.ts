import type { z } from 'zod';
import { clusterFile, type ClusterFile } from '../../placement/index.ts';
import { clusterProblem, policyProblem, quote } from '../command/index.ts';
import { EvenkeelError } from '../errors.ts';
import { parseStrictJson } from '../strict-json.ts';
import { clusterFileSchema } from './schema.ts';

/** Problems that one message lists. */
const MAX_LISTED = 5;

/** Reads a cluster file's text; throws `invalid_argument` or `limit_exceeded` that names the place and the rule. */
export function parseClusterFile(text: string, name = 'the cluster file'): ClusterFile {
  return readClusterFile(parseStrictJson(text, name), name);
}

/** The same, of JSON that is parsed already. Rows come out whole, every default filled in, in sorted order. */
export function readClusterFile(json: unknown, name = 'the cluster file'): ClusterFile {
  const file = checked(clusterFileSchema, json, name);
  const problem = clusterProblem(file) ?? policyProblem(file.policy);
  if (problem !== null) throw new EvenkeelError(problem.code, `${name}: ${problem.message}`);
  return clusterFile(file);
}

/** Checks a value against a schema; the message lists the first few places that do not fit. */
export function checked<T extends z.ZodType>(schema: T, value: unknown, name: string): z.output<T> {
  const result = schema.safeParse(value, { reportInput: true });
  if (result.success) return result.data;
  const issues = result.error.issues.slice(0, MAX_LISTED).map((issue) => `${place(issue.path)}${say(issue)}`);
  const more = result.error.issues.length - issues.length;
  if (more > 0) issues.push(`and ${more} more`);
  throw new EvenkeelError('invalid_argument', `${name}: ${issues.join('; ')}`);
}

/** `brokers[2].weight: `; empty at the top. */
function place(path: readonly PropertyKey[]): string {
  const text = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return text === '' ? '' : `${text.replace(/^\./, '')}: `;
}

function say(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') {
    const keys = issue.keys.map(quote).join(', ');
    return `${keys} is not a known key: remove it`;
  }
  if (issue.code === 'invalid_type' && issue.input === undefined) return `is missing (${issue.expected})`;
  return issue.message;
}
