import { EvenkeelError } from '../errors.ts';

/** What this member stored is damaged or incomplete. It must not serve, vote or replicate from it. */
export function damaged(directory: string, what: string): EvenkeelError {
  return new EvenkeelError(
    'corrupt',
    `the data directory ${directory} is damaged: ${what}. This member must not run on it and stays down; the others ` +
      'hold everything that was committed. Keep the directory aside for inspection',
  );
}
