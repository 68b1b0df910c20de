"""Attacks on the page that takes uploads, and on the server beneath it."""

from collections.abc import Iterator

from attack_table.attack import Attack, Group

__all__ = ["attacks"]

FAMILY = "Uploads and connections"


def attacks() -> Iterator[Attack]:
    folder = Group(family=FAMILY, module="board/test_uploads.py")
    pages = Group(family=FAMILY, module="web/test_upload_pages.py")
    lines = Group(family=FAMILY, module="web/test_connections.py")
    teams = Group(family=FAMILY, module="web/test_team_pages.py")
    api = Group(family=FAMILY, module="web/test_intake_api.py")
    people = Group(family=FAMILY, module="web/test_sign_in.py")
    mails = Group(family=FAMILY, module="web/test_mail.py")
    accounts = Group(family=FAMILY, module="intake/test_intake_teams.py")
    parts = Group(family=FAMILY, module="intake/test_intake_uploads.py")
    backups = Group(family=FAMILY, module="backup/test_backup_file.py")
    worker = Group(family=FAMILY, module="intake/test_intake_worker.py")
    postgres = Group(family=FAMILY, module="judging/test_hostile_postgres.py")
    judges = Group(family="Made-up judges", module="web/test_judging_others_ids.py")
    crowds = Group(family="Made-up judges", module="judging/test_judging_attacks.py")
    inbox = Group(family=FAMILY, module="scenario/test_hostile_branches.py")
    for group, name, test, tries, becomes in (
        (
            pages,
            "junk by upload under a team's id",
            "test_junk_under_an_id_keeps_no_team_out",
            "block the team's own update",
            "separate deliveries; the inbox receives what opens",
        ),
        (
            inbox,
            "junk by upload that stays",
            "test_uploads_go_when_the_inbox_is_done_with_them",
            "fill the upload folder",
            "removed at the inbox after its refusal",
        ),
        (
            folder,
            "a delivery that is a link, a pipe or a folder of somebody's",
            "test_what_is_no_plain_file_is_neither_followed_nor_replaced",
            "read other files, or write elsewhere",
            "neither followed nor replaced",
        ),
        (
            folder,
            "files that were taken, sent again",
            "test_a_delivery_that_was_emptied_is_none",
            "have them taken for known, and lost",
            "they are a new delivery",
        ),
        (
            pages,
            "very many forms at once",
            "test_too_many_at_once_are_asked_to_wait",
            "block all other senders",
            "refused: `upload-busy`; a team has four of 32",
        ),
        (
            parts,
            "deliveries that fill the folder",
            "test_what_waits_for_the_inbox_takes_room",
            "fill the disk",
            "refused: `upload-full`",
        ),
        (
            pages,
            "a sender who is slow on purpose",
            "test_a_slow_sender_does_not_keep_a_place",
            "occupy a slot",
            "ended below the minimum rate",
        ),
        (
            teams,
            "an invitation that was used or has ended",
            "test_an_invitation_works_once_and_ends",
            "join without the organiser",
            "refused: `invitation-used`, `invitation-expired`",
        ),
        (
            accounts,
            "one invitation used by many at once",
            "test_of_many_who_use_one_invitation_at_once_one_registers",
            "register several teams",
            "one registers; the others get `invitation-used`",
        ),
        (
            accounts,
            "an account of another site that a thief of the token added",
            "test_a_new_token_ends_all_that_a_thief_of_the_old_one_made",
            "come back after the team made a new token",
            "it ends with the token; sessions too",
        ),
        (
            accounts,
            "a sign-in with the old token while the team replaces it",
            "test_who_signs_in_while_the_token_is_replaced_has_no_session_afterwards",
            "get a session that outlives the token",
            "no session afterwards",
        ),
        (
            teams,
            "a form of another session, or of another site",
            "test_a_session_s_cookie_is_locked_down_and_a_form_is_the_session_s_own",
            "act for a team that is signed in",
            "refused; nothing is done",
        ),
        (
            teams,
            "the server's database",
            "test_no_secret_lies_in_the_database",
            "use a token, an invitation or a session",
            "it has digests of them alone",
        ),
        (
            teams,
            "the answer to somebody else's sign-in",
            "test_a_sign_in_of_somebody_else_s_browser_is_refused",
            "sign a person in for the attacker's team, or send them elsewhere",
            "refused; no address of the request is followed",
        ),
        (
            people,
            "an ID token of another issuer, client, time, nonce or person",
            "test_an_id_token_that_does_not_hold_is_refused",
            "sign in as somebody else",
            "refused: `sign-in`",
        ),
        (
            people,
            "an ID token without a signature, or with the public key as a secret",
            "test_a_token_without_the_provider_s_signature_is_refused",
            "sign in as somebody else",
            "refused: `sign-in`",
        ),
        (
            people,
            "claims of an ID token that are strange",
            "test_claims_that_are_strange_sign_nobody_in",
            "sign in as somebody else, or break the database",
            "refused: `sign-in`",
        ),
        (
            people,
            "a provider whose answers are endless, bombs, redirects or no JSON",
            "test_an_answer_of_a_false_provider_is_refused_or_no_answer",
            "exhaust memory, or take the secret elsewhere",
            "no more than a mebibyte is read, no redirect followed; nobody signs in",
        ),
        (
            people,
            "a provider whose addresses have no https",
            "test_a_provider_s_addresses_have_https",
            "read the client's secret",
            "not called",
        ),
        (
            people,
            "a provider that answers in drips",
            "test_a_provider_that_answers_in_drips_is_given_up",
            "occupy a thread for ever",
            "given up after ten seconds",
        ),
        (
            accounts,
            "a team's name that looks like another's",
            "test_a_refused_registration_leaves_the_invitation_open",
            "be taken for that team",
            "refused: `team-alike`, or `team-name` for letters of two scripts in a word",
        ),
        (
            people,
            "an ID token that another key signed",
            "test_a_token_signed_by_another_key_is_refused",
            "sign in as somebody else",
            "refused: `sign-in`",
        ),
        (
            api,
            "another team's upload",
            "test_nothing_of_another_team_is_seen",
            "read, finish, change or end it",
            "refused: `upload-unknown`",
        ),
        (
            api,
            "bytes that changed on their way",
            "test_what_changed_on_its_way_is_refused_and_uses_no_quota",
            "have another file handed over",
            "refused: `upload-digest`; no quota is used",
        ),
        (
            parts,
            "two uploads that end at once",
            "test_uploads_that_are_complete_at_once_never_exceed_the_quota",
            "use more than the quota",
            "refused: `upload-quota`",
        ),
        (
            parts,
            "an id that the public log knows",
            "test_an_id_that_the_log_knows_is_taken_and_no_way_round_the_quota",
            "upload without using quota",
            "refused: `upload-taken`",
        ),
        (
            parts,
            "metadata of a gibibyte for a stranger's submission",
            "test_metadata_and_keys_are_as_small_as_the_inbox_takes_them",
            "fill the folder without using quota",
            "refused before reading: `upload-too-large`",
        ),
        (
            api,
            "all room declared by one team, and nothing or as much as is taken sent",
            "test_a_team_that_declares_all_room_keeps_no_other_out",
            "keep all room from the others",
            "`upload-full` for that team; another's 200 kB upload takes .3 s, as it does alone",
        ),
        (
            parts,
            "all that others may have under way, from one address",
            "test_a_team_s_first_upload_is_taken_whatever_others_have_under_way",
            "keep out a team that has nothing under way",
            "its first upload is taken",
        ),
        (
            parts,
            "an upload of which nothing comes",
            "test_an_upload_of_which_nothing_comes_ends_within_minutes",
            "keep a slot for days",
            "ends after 15 minutes: `upload-expired`",
        ),
        (
            parts,
            "an upload that gets a byte a day",
            "test_a_byte_a_day_keeps_no_room_for_ever",
            "keep room from others for ever",
            "ends after seven days: `upload-expired`",
        ),
        (
            parts,
            "two requests that write one file",
            "test_two_requests_never_write_one_file_at_once",
            "mix the bytes of a file",
            "the second is refused: `upload-busy`",
        ),
        (
            postgres,
            "statements in the texts of teams",
            "test_no_text_is_more_than_a_text_to_the_intake",
            "run a statement in the database",
            "stored as text, or refused",
        ),
        (
            postgres,
            "statements in what a judge's link says",
            "test_no_text_is_more_than_a_text_to_a_campaign",
            "run a statement in the database",
            "stored as text, or refused",
        ),
        (
            postgres,
            "a lock that another program holds",
            "test_a_lock_that_somebody_holds_is_given_up",
            "stop all threads of the server",
            "`database-busy` after 30 seconds",
        ),
        (
            postgres,
            "a user of PostgreSQL with fewer rights",
            "test_a_user_with_fewer_rights_reads_or_is_refused_and_writes_nothing",
            "leave half of a change",
            "`database-read-only`; nothing is written",
        ),
        (
            worker,
            "an upload that meets a bug each time",
            "test_a_bug_that_one_upload_meets_ends_no_worker_and_stops_no_other",
            "end the worker of all uploads",
            "the worker goes on with the next upload",
        ),
        (
            backups,
            "a link where a backup is unpacked",
            "test_a_link_where_the_backup_is_unpacked_leads_nowhere",
            "have the vault's keys written elsewhere",
            "refused: `restore-place`; nothing is written",
        ),
        (
            backups,
            "a backup whose repository has 2^30 paths",
            "test_a_repository_that_unpacks_to_far_more_is_refused",
            "fill memory or the disk, or crash the restore",
            "refused; nothing stays",
        ),
        *(
            (
                Group(family=FAMILY, module="web/test_hostile_answers.py"),
                f"a server that answers with {what}",
                "test_a_head_that_does_not_end_is_given_up",
                "hold a call of any of the five clients for ever",
                "given up after a fixed time",
            )
            for what in ("a head in drips", "heads without end")
        ),
        (
            mails,
            "line ends in a name",
            "test_a_name_starts_no_header",
            "add receivers to a mail",
            "the name stays text",
        ),
        (
            lines,
            "a form in drips",
            "test_a_form_that_comes_in_drips_is_ended",
            "occupy a connection for ever",
            "ended after 30 seconds",
        ),
        (
            lines,
            "many addresses of one IPv6 network, or IPv4 as IPv6",
            "test_an_address_is_counted_as_one_machine_or_one_network",
            "pass the limits of an address, or use up everybody's",
            "a network is counted as one, an IPv4 address as itself",
        ),
    ):
        yield group.one(name, test, tries=tries, becomes=becomes)
    yield from judges.cases(
        "test_made_up_ids_shut_a_study_for_their_own_addresses_alone",
        *("link", "mturk", "prolific"),
        tries="shut a study by 30 made-up ids that stop early",
        becomes="new ids of their 7 addresses get no task; honest judges elsewhere do, undelayed",
        prefix="ids of platform ",
    )
    yield from judges.cases(
        "test_made_up_ids_of_one_network_hold_a_share_of_the_free_tasks",
        *("link", "mturk", "prolific"),
        tries="hold all 40 free tasks by 60 made-up ids that never answer",
        becomes="8 are held until one is answered or its lease ends; a judge elsewhere gets a task",
        prefix="ids without an answer, of platform ",
    )
    for name, test, tries, becomes in (
        (
            "a signed link that stops early again and again",
            "test_a_signed_link_that_stops_early_again_and_again_holds_back_itself_alone",
            "shut a study",
            "it gets no more tasks; others do",
        ),
        (
            "made-up ids, each from a network of its own",
            "test_what_tasks_that_do_not_count_cost_is_bounded_however_many_networks_come",
            "earn without limit",
            "new ids get no task beyond the bound; who judges well goes on and reopens the study",
        ),
    ):
        yield crowds.one(name, test, tries=tries, becomes=becomes)
