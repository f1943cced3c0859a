package demo

import (
	"fmt"
	"time"
)

func duplicateKey(d dice, r *route, s subject) failure {
	return failure{
		errorType: "org.postgresql.util.PSQLException",
		message: fmt.Sprintf("ERROR: duplicate key value violates unique constraint \"%s_external_id_key\"\n  Detail: Key (external_id, source)=(%s, %s) already exists.",
			r.app, s.number, pick(d, "webshop", "edi", "import")),
		library: postgresFrames(),
		own:     "store",
	}
}

func deadlock(d dice, _ *route, _ subject) failure {
	return failure{
		errorType: "org.postgresql.util.PSQLException",
		message: fmt.Sprintf("ERROR: deadlock detected\n  Detail: Process %s waits for ShareLock on transaction %s; blocked by process %s.",
			d.number(5), d.number(8), d.number(5)),
		library: postgresFrames(),
		own:     "store",
		took:    time.Second + d.span(0, 40*time.Millisecond),
	}
}

func staleState(d dice, _ *route, s subject) failure {
	return failure{
		errorType: "jakarta.persistence.OptimisticLockException",
		message:   fmt.Sprintf("%s was changed by another transaction: expected version %d, found %d", s.number, d.between(1, 4), d.between(5, 8)),
		library:   []string{"org.hibernate.persister.entity.AbstractEntityPersister.check(AbstractEntityPersister.java:2871)"},
		own:       "store",
	}
}

func notFound(_ dice, r *route, s subject) failure {
	return failure{
		errorType: "com.nordhaus.platform.NotFoundException",
		message:   fmt.Sprintf("%s knows no record '%s' (customer: %s)", r.partner, s.number, s.customer),
		own:       "lookUp",
	}
}

func addressUnknown(d dice, _ *route, s subject) failure {
	return failure{
		errorType: "com.nordhaus.shipping.AddressRejectedException",
		message: fmt.Sprintf("Address not routable: %s, %s %d, %s %s", s.customer,
			pick(d, "Große Elbstraße", "Königsallee", "Rue de l'Église", "ul. Świętokrzyska"), d.between(1, 180), d.number(5), pick(d, "Köln", "München", "Malmö", "Poznań")),
		library: httpFrames(),
		own:     "route",
	}
}

func insufficientStock(d dice, _ *route, s subject) failure {
	return failure{
		errorType: "com.nordhaus.inventory.InsufficientStockException",
		message:   fmt.Sprintf("SKU %s: requested %d, available %d", s.number, d.between(5, 60), d.between(0, 4)),
		own:       "reserve",
	}
}

func cardDeclined(d dice, _ *route, s subject) failure {
	return failure{
		errorType: "com.nordhaus.payments.PaymentDeclinedException",
		message: fmt.Sprintf(`PSP refused %s: {"refusalReason":"%s","pspReference":"%s","amount":{"currency":"EUR","value":%d}}`,
			s.number, pick(d, "Not enough balance", "Expired Card", "FRAUD", "Issuer Unavailable"), d.number(16), d.between(500, 90000)),
		library: httpFrames(),
		own:     "capture",
	}
}

func camtUnparsable(d dice, _ *route, _ subject) failure {
	return failure{
		errorType: "com.nordhaus.payments.StatementFormatException",
		message:   fmt.Sprintf("camt.053 statement %s: closing balance %d.%02d EUR does not equal opening balance + entries", d.number(12), d.between(1000, 900000), d.between(0, 99)),
		own:       "reconcile",
	}
}

func sftpDenied(d dice, r *route, s subject) failure {
	return failure{
		errorType: "org.apache.camel.component.file.GenericFileOperationFailedException",
		message:   fmt.Sprintf("Cannot store file: /in/%s.tmp on sftp://%s@%s:22 — 3: Permission denied", s.number, pick(d, "svc-export", "nordhaus"), r.partner),
		library: []string{
			"com.jcraft.jsch.ChannelSftp.throwStatusError(ChannelSftp.java:2833)",
			"org.apache.camel.component.file.remote.SftpOperations.storeFile(SftpOperations.java:948)",
		},
		own: "upload",
	}
}

func smtpRejected(d dice, _ *route, s subject) failure {
	return failure{
		errorType: "jakarta.mail.SendFailedException",
		message:   fmt.Sprintf("550 5.1.1 <%s@example.com>: Recipient address rejected: User unknown in virtual mailbox table (%s)", pick(d, "buchhaltung", "j.o'connor", "info+rechnung"), s.number),
		library:   []string{"com.sun.mail.smtp.SMTPTransport.rcptTo(SMTPTransport.java:2064)"},
		own:       "deliver",
	}
}

func ldapRefused(d dice, _ *route, _ subject) failure {
	return failure{
		errorType: "javax.naming.AuthenticationException",
		message: fmt.Sprintf("[LDAP: error code 49 - 80090308: LdapErr: DSID-0C%s, comment: AcceptSecurityContext error, data %s, v4563\x00]",
			d.hex(6), pick(d, "52e", "532", "775")),
		library: []string{"java.naming/com.sun.jndi.ldap.LdapCtx.mapErrorCode(LdapCtx.java:3259)"},
		own:     "bind",
	}
}

func edifactInvalid(d dice, _ *route, s subject) failure {
	return failure{
		errorType: "com.nordhaus.edi.EdifactSyntaxException",
		message: fmt.Sprintf("%s: segment NAD+BY+%s::9'++Bäckerei Grünwald' — component 3055 invalid (UNB %s, position %d)",
			s.number, d.number(13), d.number(9), d.between(2, 400)),
		own: "translate",
	}
}

func outOfMemory(d dice, _ *route, s subject) failure {
	return failure{
		errorType: "java.lang.OutOfMemoryError",
		message:   fmt.Sprintf("Java heap space: tried to allocate %d bytes for %s", d.between(64, 900)<<20, s.number),
		library:   []string{"java.base/java.util.Arrays.copyOf(Arrays.java:3537)", "java.base/java.io.ByteArrayOutputStream.grow(ByteArrayOutputStream.java:120)"},
		own:       "buffer",
		took:      d.span(4*time.Second, 12*time.Second),
	}
}

func diskFull(_ dice, r *route, s subject) failure {
	return failure{
		errorType: "java.nio.file.FileSystemException",
		message:   fmt.Sprintf("/var/lib/%s/%s: No space left on device", r.partner, s.number),
		library:   []string{"java.base/sun.nio.fs.UnixException.translateToIOException(UnixException.java:100)"},
		own:       "write",
	}
}

func templateBroken(d dice, _ *route, s subject) failure {
	return failure{
		errorType: "freemarker.core.InvalidReferenceException",
		message: fmt.Sprintf("The following has evaluated to null or missing:\n==> %s  [in template \"%s.ftl\" at line %d, column %d]\n\n----\nTip: use ${(x)!'default'} — %s",
			pick(d, "invoice.recipient.name", "order.items[0].price", "kunde.straße"), pick(d, "invoice_de", "mahnung", "report"), d.between(3, 220), d.between(1, 60), s.number),
		library: []string{"freemarker.core.InvalidReferenceException.getInstance(InvalidReferenceException.java:134)"},
		own:     "render",
	}
}

func kafkaTimeout(d dice, r *route, _ subject) failure {
	return failure{
		errorType: "org.apache.kafka.common.errors.TimeoutException",
		message:   fmt.Sprintf("Expiring %d record(s) for %s.%s-%d: 30000 ms has passed since batch creation", d.between(1, 400), r.app, r.id, d.between(0, 11)),
		library:   []string{"org.apache.kafka.clients.producer.internals.Sender.failBatch(Sender.java:712)"},
		own:       "publish",
		took:      30*time.Second + d.span(0, 20*time.Millisecond),
	}
}
