#!/bin/bash
# web-front.sh SERVER DIR PORT SOCKET [--prefix /PATH] [--tenant NAME] [--keep] [--many] [--log] [--without DIRECTIVE]
# A web server of its own on 127.0.0.1:PORT in front of SOCKET, in the foreground until SIGTERM. Its configuration is
# the installed example with only socket, prefix, tenant and the page's folder changed; every file it writes is in DIR; the system's own
# server of that name is neither read nor touched. --keep, which the examples do not: keeps backend connections.
# --log: writes access.log in the form that the example proposes. --many: thousands of connections at a time. --without: drops the example's lines that begin with this directive, to see what that does.
set -u
umask 022
stop_with() { printf 'web-front: %s\n' "$*" >&2; exit 1; }
[ $# -ge 4 ] || stop_with "usage: web-front.sh lighttpd|apache|nginx DIR PORT SOCKET [--prefix /PATH] [--tenant NAME] [--keep] [--many] [--without DIRECTIVE]"
top=$(cd "$(dirname "$0")/.." && pwd) || exit 1
server=$1 dir=$2 port=$3 socket=$4 prefix= tenant= keep=no many=no log=no without=
shift 4
while [ $# -gt 0 ]; do
	case $1 in
	--prefix) prefix=$2 && shift 2 ;;
	--tenant) tenant=$2 && shift 2 ;;
	--without) without=$2 && shift 2 ;;
	--keep) keep=yes && shift ;;
	--many) many=yes && shift ;;
	--log) log=yes && shift ;;
	*) stop_with "unknown option $1" ;;
	esac
done
PATH=$PATH:/usr/sbin:/sbin
mkdir -p "$dir/empty" && chmod 755 "$dir" "$dir/empty" || exit 1
# The page of the instance whose socket it is; of the source, where that is no whole instance.
page=${socket%/run/pinfold/public/fcgi.sock}/usr/share/pinfold/web
[ -d "$page" ] || page=$top/web
example() { sed -e "s#/run/pinfold/public/fcgi.sock#$socket#" -e "s#/usr/share/pinfold/web#$page#" ${without:+-e "/^[[:space:]]*$without/d"} "$top/etc/web-servers/$server.conf"; }

lighttpd() {
	example >"$dir/pinfold.conf"
	[ -z "$prefix" ] || sed -i -e "s#^fastcgi.server = (#\$HTTP[\"url\"] =~ \"^$prefix/\" { &#" -e "s#\"/\" => ((#\"$prefix\" => ((#" \
		-e "s#== \"/v1/sources\"#== \"$prefix/v1/sources\"#" -e 's#^)$#) }#' -e "s#\"^/(|#\"^$prefix/(|#" -e 's#"mod_setenv"#&, "mod_alias"#' \
		-e "s#server.document-root = \(.*\)\"#alias.url = ( \"$prefix/\" => \1/\" )#" "$dir/pinfold.conf"
	[ -z "$tenant" ] || printf 'setenv.add-environment = ( "PINFOLD_TENANT" => "%s" )\n' "$tenant" >>"$dir/pinfold.conf"
	[ $log = no ] || sed -i -e 's/^#accesslog.format/accesslog.format/' -e 's#"mod_setenv"#&, "mod_accesslog"#' \
		-e "\$aaccesslog.filename = \"$dir/access.log\"" "$dir/pinfold.conf"
	[ $log = no ] || { : >"$dir/access.log" && chown www-data "$dir/access.log"; }
	# lighttpd writes its log as its own user.
	: >"$dir/error.log" && chown www-data "$dir/error.log"
	cat >"$dir/lighttpd.conf" <<E
server.document-root = "$dir/empty"
server.bind = "127.0.0.1"
server.port = $port
server.username = "www-data"
server.groupname = "www-data"
server.errorlog = "$dir/error.log"
server.upload-dirs = ( "$dir/tmp" )
include "$dir/pinfold.conf"
E
	[ $many = no ] || printf 'server.max-fds = 16384\nserver.max-connections = 8000\n' >>"$dir/lighttpd.conf"
	mkdir -p "$dir/tmp" && chown www-data "$dir/tmp"
	# A process that changes its user forgets to die with its parent; so it gets its user before.
	[ "$port" -lt 1024 ] || exec setpriv --reuid www-data --regid www-data --clear-groups --pdeathsig TERM lighttpd -D -f "$dir/lighttpd.conf"
	exec lighttpd -D -f "$dir/lighttpd.conf"
}

apache() {
	local m modules=/usr/lib/apache2/modules
	example >"$dir/pinfold.conf"
	[ -z "$prefix" ] || sed -i -e "s#<Location \"/\">#<Location \"$prefix/\">#" -e "s#//pinfold/\"#//pinfold$prefix/\"#" \
		-e "s#SCRIPT_NAME \"\"#SCRIPT_NAME \"$prefix\"#" -e "s#\"^/#\"^$prefix/#" "$dir/pinfold.conf"
	[ -z "$tenant" ] || sed -i "s#CGIPassAuth On#&\n\tProxyFCGISetEnvIf \"true\" PINFOLD_TENANT \"$tenant\"#" "$dir/pinfold.conf"
	[ $keep = no ] || sed -i 's#flushpackets=on#& enablereuse=on#' "$dir/pinfold.conf"
	[ $log = no ] || sed -i -e 's/^#LogFormat/LogFormat/' -e "\$aCustomLog \"$dir/access.log\" pinfold" "$dir/pinfold.conf"
	{
		for m in mpm_event authz_core reqtimeout proxy proxy_fcgi alias headers mime; do
			printf 'LoadModule %s_module %s/mod_%s.so\n' $m $modules $m
		done
		cat <<E
ServerRoot "$dir"
DefaultRuntimeDir "$dir"
PidFile "$dir/apache.pid"
Mutex posixsem
ErrorLog "$dir/error.log"
User www-data
Group www-data
ServerName localhost
TypesConfig /dev/null
Listen 127.0.0.1:$port
# Ends with its parent's SIGTERM in time; 400 at once are enough for any test.
ServerLimit 4
StartServers 1
ThreadsPerChild 100
MaxRequestWorkers 400
MinSpareThreads 25
MaxSpareThreads 400
<VirtualHost 127.0.0.1:$port>
DocumentRoot "$dir/empty"
Include "$dir/pinfold.conf"
</VirtualHost>
E
	} >"$dir/apache.conf"
	exec apache2 -DFOREGROUND -d "$dir" -f "$dir/apache.conf"
}

nginx() {
	local upstream= connections=1024
	[ $many = no ] || connections=8192
	example >"$dir/pinfold.conf"
	[ -z "$prefix" ] || sed -i -e "s#^location / {#location $prefix/ {#" -e "s#SCRIPT_NAME \"\"#SCRIPT_NAME \"$prefix\"#" \
		-e "s#^\(\t*location = \)/#\1$prefix/#" -e "s#^location ~ ^/#&${prefix#/}/#" "$dir/pinfold.conf"
	[ -z "$tenant" ] || sed -i "s#^\tfastcgi_pass .*#&\n\tfastcgi_param PINFOLD_TENANT \"$tenant\";#" "$dir/pinfold.conf"
	if [ $keep = yes ]; then
		upstream="upstream kept { server unix:$socket; keepalive 64; }"
		sed -i -e "s#fastcgi_pass .*#fastcgi_pass kept;#" -e "s#fastcgi_keep_conn off#fastcgi_keep_conn on#" "$dir/pinfold.conf"
	fi
	local access="access_log off;"
	[ $log = no ] || access="$(sed -n 's/^[[:space:]]*#\(log_format pinfold .*\)/\1/p' "$dir/pinfold.conf") access_log \"$dir/access.log\" pinfold;"
	cat >"$dir/nginx.conf" <<E
user www-data www-data;
worker_processes 2;
pid "$dir/nginx.pid";
error_log "$dir/error.log" warn;
events { worker_connections $connections; }
http {
	$access
	client_body_temp_path "$dir/tmp-body";
	proxy_temp_path "$dir/tmp-proxy";
	fastcgi_temp_path "$dir/tmp-fastcgi";
	uwsgi_temp_path "$dir/tmp-uwsgi";
	scgi_temp_path "$dir/tmp-scgi";
	default_type application/octet-stream;
	$upstream
	server {
		listen 127.0.0.1:$port;
		root "$dir/empty";
		include "$dir/pinfold.conf";
	}
}
E
	exec nginx -p "$dir" -c "$dir/nginx.conf" -e "$dir/error.log" -g 'daemon off;'
}

case $server in
lighttpd | apache | nginx) "$server" ;;
*) stop_with "unknown web server $server: lighttpd, apache or nginx" ;;
esac
