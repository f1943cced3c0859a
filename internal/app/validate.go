package app

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"tocsin/internal/postgres"
	"tocsin/internal/seal"
	"tocsin/internal/tracing"
	"tocsin/notify/preset"
	"tocsin/notify/webhook"
)

// CheckOptions returns everything that is wrong with options, as far as it can be checked without
// connecting, or nil. Each error names its setting.
func CheckOptions(o Options) error {
	o.applyDefaults()
	errs := []error{o.validate()}
	if o.PostgresURL != "" {
		errs = append(errs, postgres.CheckURL("TOCSIN_POSTGRES_URL", o.PostgresURL), checkExecMode(o.PostgresURL))
	}
	if o.EncryptionKey != "" {
		if _, err := seal.New(o.EncryptionKey); err != nil {
			errs = append(errs, fmt.Errorf("TOCSIN_ENCRYPTION_KEY: %w", err))
		}
	}
	if o.Traces.URL != "" {
		errs = append(errs, tracing.CheckEnvironment())
	}
	if o.Source.Table != "" {
		if err := o.Source.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("mapping of the source: %w", err))
		}
	}
	return errors.Join(append(errs, o.checkListen(), o.checkOutgoing(), o.checkProvider())...)
}

// checkListen refuses an address that cannot be listened on, and open access on one that is not a loopback address.
func (o *Options) checkListen() error {
	host, port, err := net.SplitHostPort(o.Listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port) //nolint:noctx // names of services are in a file
	}
	if err != nil {
		return fmt.Errorf("TOCSIN_LISTEN is %q; it must be an address such as 127.0.0.1:8080", o.Listen)
	}
	if !o.has(RoleAPI) {
		return nil
	}
	// What a name stands for is known when it is listened on.
	if ip, err := netip.ParseAddr(host); err == nil || host == "" {
		return o.checkOpen(o.Listen, ip)
	}
	return nil
}

// outgoing is what makes and sends messages.
type outgoing struct {
	receivers *preset.Set
	sender    *webhook.Sender
	renderer  *webhook.Renderer
}

// outgoing connects to nothing yet. Its error names every setting that is wrong. The caller closes the sender.
func (o *Options) outgoing() (outgoing, error) {
	receivers, err := preset.Load(o.Receivers...)
	if err != nil {
		err = fmt.Errorf("TOCSIN_RECEIVERS: %w", err)
	}
	sender, errSender := webhook.New(webhook.Options{
		Version: o.Version, Now: o.Clock, AllowedNetworks: o.OutgoingAllow, SlackAPI: o.SlackAPIURL, RootCAs: o.OutgoingCAs, Proxy: o.OutgoingProxy, Presets: receivers,
	})
	renderer, errRenderer := webhook.NewRenderer(webhook.RendererOptions{PublicURL: o.PublicURL, ExchangeURL: o.ExchangeURL, Presets: receivers})
	if err := errors.Join(err, errSender, errRenderer); err != nil {
		if sender != nil {
			sender.Close()
		}
		return outgoing{}, err
	}
	return outgoing{receivers, sender, renderer}, nil
}

func (o *Options) checkOutgoing() error {
	out, err := o.outgoing()
	if err == nil {
		out.sender.Close()
	}
	return err
}

func (o *Options) checkProvider() error {
	if o.Access.OIDC.Issuer == "" || !o.has(RoleAPI) {
		return nil
	}
	_, err := o.provider(nil)
	return err
}

// checkExecMode refuses modes that derive the types of query parameters from Go types: an empty
// list has no type then, and no message would be claimed any more.
func checkExecMode(url string) error {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil //nolint:nilerr // said by the check of the URL
	}
	if mode := config.ConnConfig.DefaultQueryExecMode; mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol {
		return errors.New("TOCSIN_POSTGRES_URL asks for default_query_exec_mode=" + execModeName(mode) + ", which Tocsin does not support; behind a pooler in transaction mode, use cache_describe")
	}
	return nil
}

func execModeName(mode pgx.QueryExecMode) string {
	if mode == pgx.QueryExecModeExec {
		return "exec"
	}
	return "simple_protocol"
}
